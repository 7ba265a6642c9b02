"""Notice that somebody else has committed: told of by the system where it tells of writes, looked for elsewhere."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

LOOK_EVERY_S: Final = 0.005
"""How often to look where nobody tells of writes."""
LOOK_AGAIN_S: Final = 0.0005
"""After a write that is not committed yet: how soon to look, and then more and more seldom."""
STIRRED_S: Final = 0.25
"""How long after a write its commit is looked for."""
LOOK_ANYWAY_S: Final = 0.05
"""A file that was replaced tells nothing any more, and the commits of a slow disk come late."""


class Watch:
    """One waiter for commits of others; it may be woken by any thread, also before it waits."""

    silent_since: Final[float | None] = None
    """The file is looked at: there is no line that could fall silent."""

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self.seen: int | None = None
        """The version at the last look; may be handed on to another watch of the same file."""
        self._awake = threading.Event()

    def wait(self, seconds: float) -> bool:
        """Return when another connection has committed since the last look, when woken, or False after `seconds`."""
        until = time.monotonic() + seconds
        while not self._has_changed():
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            if self._sleep(left_s):
                break
        return True

    def pause(self, seconds: float) -> bool:
        """Look at nothing; return when woken, at the latest after `seconds`, and say whether it was."""
        if not self._awake.wait(seconds):
            return False
        self._awake.clear()
        return True

    def wake(self) -> None:
        """End the wait, or the next one, at once."""
        self._awake.set()

    def close(self) -> None:
        """Let go of what the system lent."""

    def _has_changed(self) -> bool:
        version = self._version()
        changed, self.seen = version != self.seen, version
        return changed

    def _sleep(self, left_s: float) -> bool:
        """Until it is time to look; was this one woken."""
        return self.pause(min(LOOK_EVERY_S, left_s))


class ToldWatch(Watch):
    """The kernel tells of each write to the log (inotify), so that nothing is done while nobody writes.

    It tells when the pages are written, a sync before their commit can be seen: then it is looked for.
    """

    def __init__(self, version: Callable[[], int], log: Path) -> None:
        super().__init__(version)
        self._log = os.fsencode(log)
        self._stirs = _inotify()
        try:
            self._wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        except OSError:
            os.close(self._stirs)
            raise
        self._poll = select.poll()
        self._poll.register(self._wakes, select.POLLIN)
        self._poll.register(self._stirs, select.POLLIN)
        self._pause_poll = select.poll()
        self._pause_poll.register(self._wakes, select.POLLIN)
        self._stirred_until = 0.0
        self._look_s = LOOK_AGAIN_S
        self._armed = False
        self._closing, self._is_closed = threading.Lock(), False

    def pause(self, seconds: float) -> bool:
        return bool(self._pause_poll.poll(seconds * 1_000)) and self._take_wakes()

    def wake(self) -> None:
        with self._closing:
            if not self._is_closed:
                os.eventfd_write(self._wakes, 1)

    def close(self) -> None:
        with self._closing:  # a number that was given back may be another file's by the next wake
            self._is_closed = True
            os.close(self._wakes)
            os.close(self._stirs)

    def _has_changed(self) -> bool:
        if not self._armed:
            # Before the look: what is written after it is told of.
            self._armed = _add_watch(self._stirs, self._log)
        changed = super()._has_changed()
        if changed:
            self._stirred_until = 0.0
        return changed

    def _sleep(self, left_s: float) -> bool:
        now = time.monotonic()
        if now < self._stirred_until:
            self._look_s = min(LOOK_EVERY_S, self._look_s * 1.5)
            look_s = self._look_s
        else:
            look_s = LOOK_ANYWAY_S if self._armed else LOOK_EVERY_S
        found = dict(self._poll.poll(min(look_s, left_s) * 1_000))
        if self._stirs in found:
            self._take_stirs()
        return self._wakes in found and self._take_wakes()

    def _take_stirs(self) -> None:
        with contextlib.suppress(BlockingIOError):
            told = os.read(self._stirs, 65_536)
            # The file is gone, as when the last connection of all was closed: watch the next one.
            self._armed = _IGNORED not in _masks(told)
        self._stirred_until, self._look_s = time.monotonic() + STIRRED_S, LOOK_AGAIN_S

    def _take_wakes(self) -> bool:
        try:
            os.eventfd_read(self._wakes)
        except BlockingIOError:
            return False
        return True


_MODIFY: Final = 0x2
_IGNORED: Final = 0x8000
_HEAD_BYTES: Final = 16


def _masks(told: bytes) -> set[int]:
    """The kinds of what was told; each record is four numbers (watch, mask, cookie, length) and a name."""
    masks, at = set(), 0
    while at < len(told):
        mask, length = (int.from_bytes(told[at + n : at + n + 4], sys.byteorder) for n in (4, 12))
        masks.add(mask)
        at += _HEAD_BYTES + length
    return masks


def _inotify() -> int:
    """A descriptor that tells of writes. Raises OSError where there is none, or too many of this user are open."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    try:
        made = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    except AttributeError:
        raise OSError("no inotify here") from None
    if made < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    return int(made)


def _add_watch(stirs: int, log: bytes) -> bool:
    """Be told of writes to a file; False while it is not there."""
    import ctypes

    return int(ctypes.CDLL(None).inotify_add_watch(stirs, log, _MODIFY)) >= 0


def open_watch(version: Callable[[], int], path: Path | None) -> Watch:
    """The best watch that there is for a store in this file; None is one in memory."""
    if path is not None and sys.platform == "linux":
        with contextlib.suppress(OSError):
            return ToldWatch(version, Path(f"{os.path.realpath(path)}-wal"))
    return Watch(version)
