"""What wakes those who wait in the service: one thread watches the store for all of them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from relet.core.backend import Backend, Watch
from relet.core.errors import Error

LOOK_ANYWAY_S: Final = 0.5
"""How late a change is noticed that nobody told of: what falls due, and the death of a holder."""
AWAY_S: Final = 0.5


class News:
    """Belongs to one event loop; `tell` may be called by any thread."""

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.monotonic) -> None:
        self._backend, self._clock = backend, clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = threading.Event()
        self._changed = asyncio.Event()
        self.stopping = asyncio.Event()
        """The service ends: whoever waits goes home."""
        self.version = 0
        """Grows with each change that was noticed."""
        self.on_change: list[Callable[[], None]] = []
        """Called in the loop at each."""
        self.begun_at: float | None = None
        self.looked_at: float | None = None
        """When the last look began that succeeded, by the clock."""
        self._watching: Watch | None = None

    def begin(self) -> None:
        """Watch the store, for waiters of the running loop."""
        self._loop = asyncio.get_running_loop()
        self.begun_at = self._clock()
        threading.Thread(target=self._watch, name="relet-serve-news", daemon=True).start()

    @property
    def unlooked_since(self) -> float | None:
        """When the last look began that succeeded, or the watch itself where none has yet; None before both."""
        return self.begun_at if self.looked_at is None else self.looked_at

    @property
    def silent_since(self) -> float | None:
        """Since when nothing proves that the store's own line of news is up; None where there is none."""
        return None if self._watching is None else self._watching.silent_since

    def tell(self) -> None:
        """Something was committed."""
        if self._loop is not None and not self._over.is_set():
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._wake)

    def stop(self) -> None:
        """Let everybody go; called in the loop."""
        self._over.set()
        self.stopping.set()
        self._wake()

    async def wait(self, seen: int, seconds: float) -> int:
        """The version, once it is another one than `seen`, the time is over, or the service ends."""
        if self.version == seen and not self.stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
        return self.version

    def _wake(self) -> None:
        self.version += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for told in self.on_change:
            told()

    def _watch(self) -> None:
        watch = self._watching = self._backend.watch()
        try:
            while not self._over.is_set():
                began = self._clock()
                try:
                    found = watch.wait(LOOK_ANYWAY_S)
                except Error:
                    self._over.wait(AWAY_S)
                    continue
                self.looked_at = began
                if found:
                    self.tell()
        finally:
            watch.close()
