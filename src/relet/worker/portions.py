"""Portions: which kinds a worker asks for next, and how many, where some kinds may run only so many times at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from relet.worker.app import Handler


class Portion(NamedTuple):
    """What one claim asks for."""

    kinds: list[str]
    n: int


class Portions:
    """Kinds without a limit are claimed together, each kind with one by itself; all of them take turns.

    A claim grants any of the kinds that it names. So a kind with a limit stands alone in its claim, for as many as
    there is room for: nothing is claimed that may not start.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._limits = {kind: one.concurrency for kind, one in handlers.items() if one.concurrency is not None}
        free = sorted(set(handlers) - set(self._limits))
        self._groups = [*([free] if free else []), *([kind] for kind in sorted(self._limits))]
        self._next = self._empty = 0

    @property
    def has_limits(self) -> bool:
        """Must who asks say what runs."""
        return bool(self._limits)

    def has_room(self, running: Iterable[str]) -> bool:
        """May any kind run once more: while none may, there is nothing to ask for, however many slots are free."""
        return not self._limits or bool(self.open(running))

    def open(self, running: Iterable[str]) -> list[str]:
        """The kinds that may run once more, given those that run."""
        counts = Counter(running) if self._limits else Counter()
        return [kind for kinds in self._groups for kind in kinds if counts[kind] < self._limits.get(kind, inf)]

    def next(self, running: Iterable[str], free: int) -> Portion | None:
        """The next claim for `free` slots, given the kinds that run; None when all kinds are at their limit."""
        counts = Counter(running) if self._limits else Counter()
        for n in range(len(self._groups)):
            at = (self._next + n) % len(self._groups)
            kinds = self._groups[at]
            limit = self._limits.get(kinds[0])
            room = free if limit is None else min(free, limit - counts[kinds[0]])
            if room > 0:
                self._next = (at + 1) % len(self._groups)
                return Portion(kinds, room)
        return None

    def granted(self, some: bool) -> bool:
        """Take in whether the last claim was granted all that it asked for; was none of a whole turn."""
        self._empty = 0 if some else self._empty + 1
        return self._empty >= len(self._groups)
