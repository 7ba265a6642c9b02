"""A holder as the parent sees it: a real process, in a group of its own, that can be frozen, woken and outlived."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
import time
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from relet.testing.crash.child import OUTSIDE, Order
from relet.testing.crash.nursery import Nursery
from relet.testing.crash.plan import TIMED, Action, Fault
from relet.testing.crash.told_to_end import ToldToEnd

FOLDER_VARIABLE: Final = "RELET_CRASH_FOLDER"
TAIL_CHARS: Final = 2_000


class Fate(StrEnum):
    """How a watch over a holder ended."""

    EXITED = "exited"
    FROZEN = "frozen"
    OVERTIME = "overtime"
    """It neither ended nor was stopped within its limit, and was killed."""


class Holder:
    """One process."""

    def __init__(self, nursery: Nursery, order: Order, fault: Fault | None, number: int, limit_s: float) -> None:
        self._nursery = nursery
        self._fault = fault
        self._limit_s = limit_s
        self.struck_by_time = False
        """Was the fault of a time done to it."""
        self._watched = False
        self.code: int | None = None
        """Its exit code once it has ended; negative for a signal."""
        self._line, theirs = socket.socketpair()
        folder = Path(order.folder)
        paper, self._words = folder / f"order-{number}", folder / f"words-{number}"
        order = msgspec.structs.replace(order, environment=_environment(folder, order.url))
        paper.write_bytes(msgspec.json.encode(order))
        with theirs:
            self.pid = nursery.bear(paper, self._words, theirs)
        """Its process id, which is that of its group."""

    def watch(self) -> Fate:
        """Wait until it has ended or is frozen, doing what the plan wants done at a time."""
        timed = self._fault is not None and self._fault.action in TIMED and not self._watched
        hit = timed and self._fault is not None and self._strike(self._fault)
        self._watched = True
        fate = self._wait()
        if hit:
            self.struck_by_time = fate is Fate.FROZEN or self.code == -signal.SIGKILL
        return fate

    def freeze(self) -> None:
        """Stop all of its group where it stands."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on as if nothing had been."""
        self._signal(signal.SIGCONT)

    def wake(self) -> Fate:
        """Let it go on for good, and watch it to its end."""
        with contextlib.suppress(OSError):
            self._line.send(b"w")
        self.thaw()
        return self.watch()

    def words(self) -> str:
        """The end of what it printed."""
        if not self._words.exists():
            return ""
        return self._words.read_text(encoding="utf-8", errors="replace")[-TAIL_CHARS:].strip()

    def close(self) -> None:
        """Nothing of it is left after this."""
        if self.code is None:
            self._signal(signal.SIGKILL)
            with contextlib.suppress(ToldToEnd):  # and the nursery has put all of them to an end
                while self.code is None:
                    self._take(self._nursery.wait(self.pid))
        self._line.close()

    def _strike(self, fault: Fault) -> bool:
        """Do what is to be done at a time; False when it was never granted anything."""
        said, _, _ = select.select([self._line], [], [], self._limit_s)
        if not said or self._line.recv(1) != b"g":
            return False
        # A time by chance is what is wanted here.
        time.sleep(fault.at / 1_000)
        self._signal(signal.SIGKILL if fault.action is Action.KILL_AT else signal.SIGSTOP)
        return True

    def _wait(self) -> Fate:
        late = threading.Event()

        def end() -> None:
            late.set()
            self._signal(signal.SIGKILL)

        timer = threading.Timer(self._limit_s, end)
        timer.daemon = True
        timer.start()
        try:
            status = self._nursery.wait(self.pid)
        finally:
            timer.cancel()
        self._take(status)
        if self.code is None:
            return Fate.FROZEN
        return Fate.OVERTIME if late.is_set() else Fate.EXITED

    def _take(self, status: int) -> None:
        if not os.WIFSTOPPED(status):
            self.code = os.waitstatus_to_exitcode(status)
            self._signal(signal.SIGKILL)  # what it has started must not work on for a holder that is gone

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def _environment(folder: Path, url: str | None) -> dict[str, str]:
    """The user's own, but no store of theirs: an app that connects by itself gets an empty one of this run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RELET_")}
    if url is not None:
        from relet.store.postgres.connect import WITHOUT

        kept[WITHOUT] = os.environ.get(WITHOUT, "")  # of the server that the run is given
    outside = folder / OUTSIDE
    outside.mkdir(exist_ok=True)
    return {**kept, "RELET_URL": f"sqlite:///{folder / 'own.db'}", "RELET_STATE_DIR": str(folder / "own-state"),
            FOLDER_VARIABLE: str(outside)}  # fmt: skip
