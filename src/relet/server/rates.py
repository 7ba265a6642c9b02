"""How often somebody may ask: buckets that fill with time, one for each key and one for each address."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from relet.core.border import maybe_rate
from relet.core.errors import Unavailable
from relet.core.problem import AFTER_S, TOO_MANY

AGAIN_S: Final = 1.0
AGAIN_S_MAX: Final = 86_400.0
KEPT_MAX: Final = 10_000
"""Buckets, and keys that were good lately; the ones that were asked for last stay."""


class Rate(NamedTuple):
    """So many at once, and so many each second for ever."""

    at_once: float
    each_second: float

    def __str__(self) -> str:
        if self.each_second >= 1:
            return f"{self.each_second:g} requests a second"
        return f"{self.each_second * 3_600:g} requests an hour"


PER_KEY: Final = Rate(10_000, 5_000)
"""More than one key's requests should ever be, and less than keeps the others from being heard."""
BURST_S: Final = 2.0
BURST_LEAST: Final = 10
"""Of a rate that is given: who has asked nothing for a while may ask so much of it at once, and so often at least."""
FAILURES: Final = Rate(30, 0.5)
"""Wrong keys from one address: a fleet with an old key is told so, and whoever guesses gets nowhere."""


def rate_of(given: str | float) -> Rate:
    """A rate as it is written: `100/s`, `6000/m`, a number of each second, or `none`. Raises `Invalid`."""
    text = str(given).strip()
    n, ms = maybe_rate("rate", f"{text}/s" if text.isdigit() else text) or (0, 0)
    if not n:
        return Rate(math.inf, 0)
    each_second = n / ms * 1_000
    return Rate(max(BURST_LEAST, each_second * BURST_S), each_second)


class Buckets:
    """One for each name. The least used of too many is forgotten, which is as good as full."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self._clock = rate, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def has(self, name: str) -> bool:
        """Is there one left to take."""
        return self._of(name) >= 1

    def after_s(self, name: str) -> float:
        """How long until there is one."""
        lacks = max(0.0, 1 - self._of(name))
        return lacks and (lacks / self.rate.each_second if self.rate.each_second else math.inf)

    def take(self, name: str) -> bool:
        """Take one; False where none is left."""
        if taken := (left := self._of(name)) >= 1:
            self._left[name] = left - 1, self._clock()
            self._left.move_to_end(name)
            while len(self._left) > KEPT_MAX:
                self._left.popitem(last=False)
        return taken

    def _of(self, name: str) -> float:
        left, at = self._left.get(name, (self.rate.at_once, self._clock()))
        return min(self.rate.at_once, left + (self._clock() - at) * self.rate.each_second)


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


def too_often(what: str, way: str, after_s: float = AGAIN_S) -> Unavailable:
    """The refusal of what comes too often: nothing was done, and before so long nothing will be."""
    whole_s = math.ceil(min(max(after_s, AGAIN_S), AGAIN_S_MAX))
    return Unavailable(f"{what}; nothing was done. {way}", code=TOO_MANY, **{AFTER_S: whole_s})
