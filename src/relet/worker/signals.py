"""SIGTERM and SIGINT for a worker: the first drains, the second aborts, the third is the system's own."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

from relet.core.border import invalid

DRAIN, ABORT = 1, 2
"""How many signals ask for what."""

WATCHED = (signal.SIGTERM, signal.SIGINT)


class SignalsHeld:
    """Signal handlers, taken for the life of a worker and given back after it; main thread only."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self.seen = 0

    def hold(self) -> None:
        """Take the signals. Raises `Invalid` outside of the main thread, where no handler can be set."""
        if threading.current_thread() is not threading.main_thread():
            raise invalid("signals", "can be taken in the main thread only; leave signals=True out here")
        for number in WATCHED:
            self._before[number] = signal.signal(number, self._take)

    def give_back(self) -> None:
        """As they were."""
        for number, handler in self._before.items():
            # None: set by code that is not Python's, and not to be had back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before = {}

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self.seen += 1
        # Noted only, since the code that it interrupts may hold the very locks; the worker looks at each turn.
        if self.seen == DRAIN:
            os.write(2, b"relet: draining; once more to abort\n")
        elif self.seen == ABORT:
            os.write(2, b"relet: aborting\n")
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
