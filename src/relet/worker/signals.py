"""SIGTERM and SIGINT for a worker: the first drains, the second aborts, the third is the system's own."""

from __future__ import annotations

import logging
import os
import signal
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relet.worker.worker import Worker

log = logging.getLogger("relet.worker")

WATCHED = (signal.SIGTERM, signal.SIGINT)


class SignalsHeld:
    """Signal handlers, taken for the life of a worker and given back after it; main thread only."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._before: dict[int, Any] = {}
        self.seen = 0

    def hold(self) -> None:
        """Take the signals."""
        for number in WATCHED:
            self._before[number] = signal.signal(number, self._take)

    def give_back(self) -> None:
        """As they were."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self.seen += 1
        if self.seen == 1:
            os.write(2, b"relet: draining; once more to abort\n")
            self._worker.drain()
        elif self.seen == 2:  # noqa: PLR2004 - the second signal
            os.write(2, b"relet: aborting\n")
            self._worker.abort()
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
