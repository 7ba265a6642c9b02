"""queues: how each queue is set, and what keeps its ready tasks from being granted; never writes."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.fields import AfterName, Name, PageItems
from relet.core.model import Instants
from relet.core.operation import Operation
from relet.core.rules.room import Back, HeldBack, held_back
from relet.core.rules.turns import WITHOUT_SHARE, are_all_full
from relet.core.tx import QueueRow, Tx


class Queues(Request, frozen=True, kw_only=True):
    """A page of queues by name, or the one of `name`, as it stands for tasks of `share`."""

    name: Name | None = None
    share: Name | None = None
    after: AfterName = ""
    limit: PageItems = limits.PAGE_ITEMS


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """A queue's limits and what is held of it. `live` leases have not expired; `places` are what a limit counts."""

    name: str
    paused: bool
    concurrency: int | None
    share_concurrency: int | None
    rate: int | None
    rate_ms: int | None
    retention_ms: int | None
    shares: bool
    """Has any of its tasks had a share."""
    last_share: str | None
    live: int
    places: int
    """Leases that are not recorded as ended: one that has expired frees its place in the next claim."""
    held_back: HeldBack | None
    next_ms: int | None
    """In how many milliseconds the rate lets the next grant through, where that is what keeps tasks waiting."""


async def queues(tx: Tx, ask: Queues) -> list[QueueState]:
    """The queues that have knobs or ever had a task; cheap however many tasks they have."""
    names = [ask.name] if ask.name is not None else await tx.find_queues(ask.after, ask.limit)
    at = await tx.instants()
    return [await _state(tx, name, ask.share, at) for name in names]


async def _state(tx: Tx, name: str, share: str | None, at: Instants) -> QueueState:
    row = await tx.find_queue(name) or QueueRow(tx.tenant, name, False, None, None, None, None, None)
    held = await tx.count_leased_of(name)
    back = await held_back(tx, row, share, at)
    # A lease that has expired frees its place in the next claim.
    if back is None and share is None and held.live == held.leased and await are_all_full(tx, row):
        back = Back(HeldBack.SHARE_CONCURRENCY, None)
    return QueueState(
        name=name, paused=row.paused, concurrency=row.concurrency, share_concurrency=row.share_concurrency,
        rate=row.rate, rate_ms=row.rate_ms, retention_ms=row.retention_ms, shares=row.shared_from is not None,
        last_share=None if row.last_share == WITHOUT_SHARE else row.last_share, live=held.live, places=held.leased,
        held_back=None if back is None else back.why, next_ms=None if back is None else back.next_ms,
    )  # fmt: skip


QUEUES: Final = Operation(
    "queues", Queues, list[QueueState], queues, "Limits of queues, and why nothing is granted.", writes=False
)
