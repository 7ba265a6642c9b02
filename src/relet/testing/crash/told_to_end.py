"""A crash test that is told to end by a signal ends between two steps of its own: nothing of it is left."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class ToldToEnd(KeyboardInterrupt):
    """A crash test was told to end."""


class Ending:
    """Has a crash test been told to end; it looks where it may be left, and is never torn out of anything."""

    def __init__(self) -> None:
        self.told = False
        self._told: list[Callable[[], None]] = []

    def then(self, call: Callable[[], None]) -> None:
        """What wakes somebody who waits, called when it is told; at once, when it was."""
        self._told.append(call)
        if self.told:
            call()

    def tell(self) -> None:
        """It must end."""
        self.told = True
        for call in self._told:
            call()

    def look(self) -> None:
        """Raises `ToldToEnd` when it was told."""
        if self.told:
            raise ToldToEnd


@contextmanager
def told_to_end() -> Iterator[Ending]:
    """In this block SIGINT, SIGTERM and SIGHUP tell an ending, so that folders and processes are put away.

    For the main thread. A signal that is ignored, as SIGHUP is under nohup, stays ignored. An exception raised by a
    handler could strike while a folder is made or a process forked, and leave it; the second signal is for a check
    of the user's that does not end, and raises where it strikes.
    """
    ending = Ending()

    def strike(_number: int, _frame: FrameType | None) -> None:
        ending.look()
        ending.tell()

    told = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {one: handler for one in told if (handler := signal.getsignal(one)) is not signal.SIG_IGN}
    try:
        for one in before:
            signal.signal(one, strike)
        yield ending
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
