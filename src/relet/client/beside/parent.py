"""The process that started this one: is it there, and does it run."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
STANDING: Final = frozenset("TtZXx")
"""Stopped, stopped by a tracer, or dead and not yet reaped."""


class Parent:
    """A parent, watched by its child, which ends with it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.descriptor: int | None = None
        """Readable once the parent is dead; None where the platform has no such thing."""
        if sys.platform == "linux":
            die_with_parent()
            with contextlib.suppress(OSError):
                self.descriptor = os.pidfd_open(pid)

    def is_gone(self) -> bool:
        """Has it died; whoever adopts an orphan is another process."""
        return os.getppid() != self._pid

    def runs(self) -> bool:
        """Is it there, and neither stopped nor held by a tracer."""
        return not self.is_gone() and self._state() not in STANDING

    def _state(self) -> str:
        return _state_in_proc(self._pid) if sys.platform == "linux" else _state_by_ps(self._pid)


def _state_in_proc(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name of the program stands in brackets, and may hold any sign.
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "X"


def _state_by_ps(pid: int) -> str:
    told = subprocess.run(  # noqa: S603 - fixed words and a number
        ["/bin/ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return told.stdout.strip()[:1] or "X"


def die_with_parent() -> None:
    """Ask Linux to kill this process when the thread that started it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
