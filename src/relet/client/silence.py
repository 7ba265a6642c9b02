"""Liveness is not progress: work that moves nothing for too long is not kept alive by its heartbeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from relet.client.clock import HolderClock

TOLD_SHARE: Final = 0.1
"""Of the longest silence: others are told no more often."""


class Silence:
    """When something last moved under a lease, and how long nothing may."""

    def __init__(
        self, clock: HolderClock, most_ms: int, on_moved: Callable[[], None], *, elsewhere: bool = False
    ) -> None:
        """`elsewhere`: what moves is another process, which tells some of it."""
        self._clock = clock
        self._on_moved = [on_moved]
        self.most_ms = most_ms
        self._allowed_ms = self.told_most_ms if elsewhere else most_ms
        self._moved_ms = self._told_ms = clock.fast_ms()

    @property
    def is_too_long(self) -> bool:
        """Has nothing moved for so long that the lease is not renewed any more."""
        return self.so_far_ms >= self._allowed_ms

    @property
    def told_most_ms(self) -> float:
        """How long those who are told may hear nothing: the last move may have been one that nobody was told of."""
        return self.most_ms * (1 + TOLD_SHARE)

    @property
    def so_far_ms(self) -> float:
        """How long ago something moved."""
        return self._clock.fast_ms() - self._moved_ms

    def end(self) -> None:
        """Something has moved: a save, a step, an effect, a note of progress."""
        self._moved_ms = self._clock.fast_ms()
        if self._moved_ms - self._told_ms < self.most_ms * TOLD_SHARE:
            return
        self._told_ms = self._moved_ms
        for tell in self._on_moved:
            tell()

    def also(self, tell: Callable[[], None]) -> None:
        """Tell this one too."""
        self._on_moved.append(tell)
