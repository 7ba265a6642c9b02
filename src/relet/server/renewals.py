"""Heartbeats of many holders in one call: to the store one transaction, however many requests they came in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple

import msgspec

from relet.core.errors import Error
from relet.core.rules.renew import Renew, Renewed
from relet.server.together import Together

ITEMS_MAX: Final = 1_000
"""Of one call: a thousand that are all refused hold the others up for a tenth of a second."""
Answers = list[Renewed | Error]
Call = Callable[[str, Renew, int], Awaitable[Answers]]


class _Beat(NamedTuple):
    ask: Renew
    patience_ms: int


class Renewals:
    """Those of one tenant share a call; each is judged for itself, and answered as if it were alone."""

    def __init__(self, call: Call, side_by_side: int) -> None:
        self._call, self._side_by_side = call, side_by_side
        self._tenants: dict[str, Together[_Beat, Answers]] = {}

    async def answer(self, tenant: str, ask: Renew, patience_ms: int) -> Answers:
        """Aligned with the handles. Raises what a call raises.

        Many are renewed in pieces, between which those of others have their turn.
        """
        if len(ask.handles) > ITEMS_MAX:
            pieces = [ask.handles[n : n + ITEMS_MAX] for n in range(0, len(ask.handles), ITEMS_MAX)]
            asks = [msgspec.structs.replace(ask, handles=piece) for piece in pieces]
            return [one for piece in asks for one in await self.answer(tenant, piece, patience_ms)]
        if ask.ttl_ms is not None:  # rare, and of as many kinds as there are numbers
            return await self._call(tenant, ask, patience_ms)
        if (together := self._tenants.get(tenant)) is None:
            together = self._tenants[tenant] = Together(
                partial(self._renew, tenant), ITEMS_MAX,
                weight=lambda beat: len(beat.ask.handles), side_by_side=self._side_by_side,
            )  # fmt: skip
        return await together.answer(_Beat(ask, patience_ms))

    async def _renew(self, tenant: str, beats: Sequence[_Beat]) -> list[Answers]:
        handles = [handle for beat in beats for handle in beat.ask.handles]
        # The most patient of them: whoever gives up before has still lost nothing, and repeats it.
        patience_ms = max(beat.patience_ms for beat in beats)
        answers = await self._call(tenant, Renew(handles=handles), patience_ms)
        assert len(answers) == len(handles), "aligned with the handles"
        ends = list(accumulate(len(beat.ask.handles) for beat in beats))
        return [answers[end - len(beat.ask.handles) : end] for beat, end in zip(beats, ends, strict=True)]
