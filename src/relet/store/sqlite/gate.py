"""Fair turns between processes: an advisory lock on a file beside the store, taken around write transactions.

SQLite's own lock has no line: whoever looks at the right moment gets it. Here the kernel keeps the line, and frees
the place of whoever dies. Nothing depends on it: who cannot have it in time goes on without, as correct as ever.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final

if sys.platform != "win32":
    import fcntl

SECONDS_MAX: Final = 0.25
"""Longer than any healthy transaction ahead; whoever keeps the gate longer may be stopped in it."""
SECONDS_MIN: Final = 0.02
"""Whoever waited for less knows nothing of whoever has it."""
PATIENCE_SHARE: Final = 0.5
"""Of the time that a caller has: the rest is for the store's own lock, which is the one that counts."""
IGNORED_S: Final = 1.0
"""After a wait in vain the gate is passed by for so long."""


class Gate:
    """The gate of one lane: entered and left under the lane's lock, by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._usher: _Usher | None = None
        self._ticket: _Ticket | None = None
        self._inside = False
        self._ignored_until = 0.0

    def enter(self, patience_s: float) -> None:
        """Wait for this process's turn; for a bounded time, and never in the way of an interrupt."""
        if self._ignored_until:
            if time.monotonic() < self._ignored_until:
                return
            self._ignored_until = 0.0
        wait_s = min(patience_s * PATIENCE_SHARE, SECONDS_MAX)
        try:
            descriptor = self._descriptor if self._descriptor is not None else self._open()
            self._inside = True
            in_vain = not _is_ours(descriptor) and not self._queue(wait_s)
        except (OSError, RuntimeError):
            # No room for it, no right to it, or no thread to be had: the store's own lock has the say anyway.
            in_vain, wait_s = True, SECONDS_MIN
        if in_vain and wait_s >= SECONDS_MIN:
            self._ignored_until = time.monotonic() + IGNORED_S

    def leave(self) -> None:
        """Let the next one in, if this process is inside; however far `enter` came."""
        if not self._inside:
            return
        if self._ticket is not None and not self._ticket.tear() and self._usher is not None:
            self._usher.open()
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self._ticket, self._inside = None, False

    def close(self) -> None:
        """Let go of the file; it is opened again when it is needed again."""
        descriptor, usher = self._descriptor, self._usher
        self._descriptor = self._usher = self._ticket = None
        self._inside = False
        if descriptor is not None:
            os.close(descriptor)
        if usher is not None:
            usher.dismiss()

    def abandon(self) -> None:
        """In a forked child: it has no part in its parent's place in the line."""
        if self._usher is not None:
            # Its thread is not here to close it. Closed, not unlocked: that would unlock it for the parent too.
            os.close(self._usher.descriptor)
            self._usher = None
        self.close()

    def _open(self) -> int:
        self._descriptor = open_gate(self._path)
        return self._descriptor

    def _queue(self, seconds: float) -> bool:
        """Stand in the line; False when that took too long."""
        if self._usher is None:
            self._usher = _Usher(open_gate(self._path))
        self._ticket = ticket = _Ticket()
        self._usher.tickets.put(ticket)
        if ticket.called.acquire(timeout=seconds) or not ticket.tear():
            return True
        self._ticket = None
        return False


class _Ticket:
    """One wait in the line: either called or torn, whichever comes first."""

    __slots__ = ("_whole", "called")

    def __init__(self) -> None:
        self._whole = deque([None])
        self.called = threading.Lock()
        self.called.acquire()

    def tear(self) -> bool:
        """Was it whole until now. Asked by whoever waits no longer, and by whoever has the gate for it."""
        with suppress(IndexError):
            self._whole.pop()
            return True
        return False


class _Usher:
    """A thread that stands in the line: there the kernel keeps order, but knows no end to a wait."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.tickets: SimpleQueue[_Ticket | None] = SimpleQueue()
        try:
            threading.Thread(target=self._run, name="relet-gate", daemon=True).start()
        except RuntimeError:
            os.close(descriptor)
            raise

    def open(self) -> None:
        """Let the next one in."""
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def dismiss(self) -> None:
        """It is not needed any more."""
        self.tickets.put(None)

    def _run(self) -> None:
        while (ticket := self.tickets.get()) is not None:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            if ticket.tear():
                ticket.called.release()
            else:
                self.open()
        os.close(self.descriptor)


def _is_ours(descriptor: int) -> bool:
    """Found free, and taken."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_gate(path: Path) -> int:
    """A descriptor of its own, and so a place of its own in the line. Raises OSError."""
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)


def gate_beside(path: Path) -> Gate | None:
    """The gate of a store's file; None where the platform has no such locks."""
    return None if sys.platform == "win32" else Gate(path.with_name(f"{path.name}-gate"))
