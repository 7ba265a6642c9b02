"""How often somebody may ask: buckets that fill with time, one for each key and one for each address."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from relet.core.errors import Unavailable
from relet.core.problem import TOO_MANY

KEPT_MAX: Final = 10_000
"""Buckets, and keys that were good lately; the ones that were asked for last stay."""


class Rate(NamedTuple):
    """So many at once, and so many each second for ever."""

    at_once: float
    each_second: float


PER_KEY: Final = Rate(10_000, 5_000)
"""More than one key's requests should ever be, and less than keeps the others from being heard."""
FAILURES: Final = Rate(30, 0.5)
"""Wrong keys from one address: a fleet with an old key is told so, and whoever guesses gets nowhere."""


class Buckets:
    """One for each name. The least used of too many is forgotten, which is as good as full."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def has(self, name: str) -> bool:
        """Is there one left to take."""
        return self._of(name) >= 1

    def take(self, name: str) -> bool:
        """Take one; False where none is left."""
        if taken := (left := self._of(name)) >= 1:
            self._left[name] = left - 1, self._clock()
            self._left.move_to_end(name)
            while len(self._left) > KEPT_MAX:
                self._left.popitem(last=False)
        return taken

    def _of(self, name: str) -> float:
        left, at = self._left.get(name, (self._rate.at_once, self._clock()))
        return min(self._rate.at_once, left + (self._clock() - at) * self._rate.each_second)


class Lately:
    """Names that were seen lately, and no more of them than are worth remembering."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return name in self._seen

    def add(self, name: str) -> None:
        """Seen now."""
        self._seen[name] = None
        self._seen.move_to_end(name)
        while len(self._seen) > KEPT_MAX:
            self._seen.popitem(last=False)

    def drop(self, name: str) -> None:
        """Not any more."""
        self._seen.pop(name, None)


def too_often(what: str, way: str) -> Unavailable:
    """The refusal of what comes too often: nothing was done."""
    return Unavailable(f"{what}; nothing was done. {way}", code=TOO_MANY)
