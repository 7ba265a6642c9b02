"""Where claims for very many different tasks wait: one question after a change, in place of an attempt by each."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Final, Protocol

from relet.core.errors import Error
from relet.core.rules.outlook import Foreseen

QUEUES_MAX: Final = 500
"""Of one question, which takes about a millisecond."""
AGAIN_S: Final = 0.5
"""When to look again where the store did not answer, or nobody has closed yet what has lapsed."""
LEAST_S: Final = 0.02

Ask = Callable[[str, Sequence[str]], Awaitable[Foreseen]]


class Waiting(Protocol):
    """Those that want the same."""

    @property
    def tenant(self) -> str:
        """Whose tasks."""

    @property
    def names(self) -> Sequence[str]:
        """The queues that they want them from; none where they want one task by its id."""

    def stir(self) -> None:
        """Let the first of them try."""


class Lookout:
    """Belongs to one event loop."""

    def __init__(self, ask: Ask, waiting: Callable[[], Iterable[Waiting]]) -> None:
        self._ask, self._waiting = ask, waiting
        self._changed = False
        self._looking: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Stir those for whom there may be something now. Of what changes meanwhile another look tells."""
        self._changed = True
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._go_on())

    def rest(self) -> None:
        """Nobody is looked out for any more."""
        if self._later is not None:
            self._later.cancel()
            self._later = None

    async def _go_on(self) -> None:
        while self._changed:
            self._changed = False
            self.rest()
            again_s = await self._look()
            if again_s is not None:
                self._later = asyncio.get_running_loop().call_later(again_s, self.look)

    async def _look(self) -> float | None:
        """Look once; after how long it is worth looking again though nothing has changed."""
        tenants: dict[str, list[Waiting]] = defaultdict(list)
        for one in self._waiting():
            tenants[one.tenant].append(one)
        lapses_ms: list[int] = []
        try:
            for tenant, waiting in tenants.items():
                worth: set[str] = set()
                names = iter(sorted({name for one in waiting for name in one.names}))
                while some := list(islice(names, QUEUES_MAX)):
                    seen = await self._ask(tenant, some)
                    worth.update(seen.queues)
                    lapses_ms += [] if seen.lapse_ms is None else [seen.lapse_ms]
                for one in waiting:
                    if not one.names or not worth.isdisjoint(one.names):
                        one.stir()
        except Error:
            return AGAIN_S
        return self._lapse(min(lapses_ms, default=None))

    def _lapse(self, lapse_ms: int | None) -> float | None:
        """A claim closes what has lapsed in any queue, and then there is a change to look at."""
        if lapse_ms is None:
            return None
        if lapse_ms > 0:
            return max(LEAST_S, lapse_ms / 1_000)
        for one in islice(self._waiting(), 1):
            one.stir()
        return AGAIN_S
