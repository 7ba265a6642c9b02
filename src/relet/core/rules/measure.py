"""measure: every figure of a tenant's work at one instant, for whoever draws them over time."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.doctor.condition import Aged, Lapsed
from relet.core.operation import Operation
from relet.core.rules.inspect import CountTasks, Stats, stats
from relet.core.tx import Tx

QUEUES: Final = 100
"""Of how many queues the longest wait is looked for; those with the first names."""
READY: Final = 100
"""How far a queue is looked through for it, from the task that is claimed next."""


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """All queues of the tenant."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Counts, and how long what waits has waited."""

    stats: Stats
    ready_ms: dict[str, int]
    """By queue, what a claim could take now and has been ready longest; none of queues that are paused."""
    lapsed: Lapsed | None
    unknown: Aged | None
    """Effects of which nobody knows whether they happened."""


async def measure(tx: Tx, ask: Measure) -> Measured:  # noqa: ARG001 - there is nothing to choose
    """Counts, and seeks in indexes: bounded in its work, however many tasks have finished."""
    now_ms, wall_ms = await tx.instants()
    counted = await stats(tx, CountTasks())
    ready_ms: dict[str, int] = {}
    for figures in counted.queues[:QUEUES]:
        since_ms = await _ready_since(tx, figures.queue) if figures.ready or figures.delayed else None
        if since_ms is not None:
            ready_ms[figures.queue] = max(0, wall_ms - since_ms)
    return Measured(
        stats=counted, ready_ms=ready_ms, lapsed=await tx.find_lapsed(now_ms),
        unknown=await tx.find_unknown(wall_ms, wall_ms),
    )  # fmt: skip


async def _ready_since(tx: Tx, queue: str) -> int | None:
    row = await tx.find_queue(queue)
    if row is not None and row.paused:
        return None
    kinds = await tx.find_ready_kinds(queue, None if row is None else row.share_concurrency, READY)
    return min((kind.ready_wall_ms for kind in kinds), default=None)


# Not in the catalog: it is made of what `stats` and `condition` answer, for the service that draws it.
MEASURE: Final = Operation("measure", Measure, Measured, measure, "All figures at one instant.", writes=False)
