"""A crash test that is told to end by a signal ends as one that is interrupted: nothing of it is left."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ends_as_interrupted() -> Iterator[None]:
    """In this block SIGTERM and SIGHUP raise KeyboardInterrupt, so that folders and processes are put away.

    For the main thread. A signal that is ignored, as SIGHUP is under nohup, stays ignored.
    """
    told = (signal.SIGTERM, signal.SIGHUP)
    before = {one: handler for one in told if (handler := signal.getsignal(one)) is not signal.SIG_IGN}
    try:
        for one in before:
            signal.signal(one, _interrupt)
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
