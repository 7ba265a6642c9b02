"""Where claims for very many different tasks wait: one question after a change, in place of an attempt by each."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, Protocol

from relet.core.errors import Error
from relet.core.rules.outlook import Foreseen

QUEUES_MAX: Final = 500
"""Of one question, which takes about a millisecond."""
AGAIN_S: Final = 0.5
"""After how long one tries though nothing has changed: for a holder that is dead, or whatever nobody told of; and
when a store is asked again that did not answer."""
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

    @property
    def is_up(self) -> bool:
        """Is it going to look again by itself."""
        return self._later is not None or (self._looking is not None and not self._looking.done())

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

    def _tick(self) -> None:
        self._later = None
        self._have_one_try()
        self.look()

    def _have_one_try(self) -> None:
        """A claim of a queue closes what has lapsed, and what dead holders have, in all; then there is a change."""
        for one in islice((one for one in self._waiting() if one.names), 1):
            one.stir()

    async def _go_on(self) -> None:
        while self._changed:
            self._changed = False
            again_s: float | None = AGAIN_S
            try:
                again_s = await self._look()
            finally:
                self._tick_in(again_s)

    def _tick_in(self, seconds: float | None) -> None:
        """In so long at the latest: however often there is a change, nothing is put off by it."""
        if seconds is None:
            self.rest()
            return
        loop = asyncio.get_running_loop()
        if self._later is None or loop.time() + seconds < self._later.when():
            self.rest()
            self._later = loop.call_later(seconds, self._tick)

    async def _look(self) -> float | None:
        """Look once; after how long one is to try though nothing has changed. None where nobody waits."""
        tenants: dict[str, list[Waiting]] = defaultdict(list)
        for one in self._waiting():
            tenants[one.tenant].append(one)
        lapses_ms: list[int] = []
        for tenant, waiting in tenants.items():
            with suppress(Error):  # in half a second it is asked again
                seen = await self._seen(tenant, waiting)
                lapses_ms += [one.lapse_ms for one in seen if one.lapse_ms is not None]
                worth = {name for one in seen for name in one.queues}
                for one in waiting:
                    if not one.names or not worth.isdisjoint(one.names):
                        one.stir()
        return self._next_s(min(lapses_ms, default=None)) if tenants else None

    async def _seen(self, tenant: str, waiting: Sequence[Waiting]) -> list[Foreseen]:
        names = sorted({name for one in waiting for name in one.names})
        return [await self._ask(tenant, names[n : n + QUEUES_MAX]) for n in range(0, len(names), QUEUES_MAX)]

    def _next_s(self, lapse_ms: int | None) -> float:
        if lapse_ms is None:
            return AGAIN_S
        if lapse_ms <= 0:
            self._have_one_try()
            return AGAIN_S
        return min(AGAIN_S, max(LEAST_S, lapse_ms / 1_000))
