"""glance: is there anything to claim, and if not, when at the latest might there be; for workers that wait."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.backend import Request
from relet.core.fields import Kinds, Queues
from relet.core.model import Instants
from relet.core.operation import Operation
from relet.core.rules.room import held_back, is_overdrawn
from relet.core.rules.turns import are_all_full
from relet.core.tx import Tx


class Glance(Request, frozen=True, kw_only=True):
    """What a claim of these queues and kinds would look for."""

    queues: Queues
    kinds: Kinds | None = None
    """Tasks of these kinds alone; null takes all."""


class Glanced(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to claim now, and if not, when to look again though nobody commits."""

    ready: bool
    """May a claim be granted something, or close a lapse."""
    next_ms: int | None
    """After how long there may be something by itself: a delay that ends, a lease that lapses. None for never."""


async def glance(tx: Tx, ask: Glance) -> Glanced:
    """Without a write and without a lock: whoever waits for work keeps nobody from doing theirs."""
    at = await tx.instants()
    lapse_ms = await tx.find_next_lapse()
    left_ms = [] if lapse_ms is None else [lapse_ms - at.now_ms]
    ready = False
    for queue in ask.queues:
        seen = await tx.find_waiting(queue, ask.kinds)
        if seen.paused:
            continue
        is_ready, opens_ms = await _is_open(tx, queue, ask.kinds, at) if seen.ready else (False, None)
        ready = ready or is_ready
        left_ms += [] if opens_ms is None else [opens_ms]
        left_ms += [] if seen.due_ms is None else [seen.due_ms - at.now_ms]
        left_ms += [] if seen.due_wall_ms is None else [seen.due_wall_ms - at.wall_ms]
    next_ms = min(left_ms, default=None)
    return Glanced(ready=ready or (next_ms is not None and next_ms <= 0), next_ms=next_ms)


async def _is_open(tx: Tx, name: str, kinds: list[str] | None, at: Instants) -> tuple[bool, int | None]:
    """Is a queue at no limit of its own, nor all that is ready of it at its share's; else when its rate lets the next
    through. Leases that end are heard of.
    """
    row = await tx.find_queue(name)
    if row is None or not row.is_bounded:
        return True, None
    if is_overdrawn(row, at):
        return True, None  # nobody who only looks would ever see it end
    back = await held_back(tx, row, None, at)
    if back is not None:
        return False, back.next_ms
    return not await are_all_full(tx, row, kinds), None


GLANCE: Final = Operation(
    "glance",
    Glance,
    Glanced,
    glance,
    "Is there something to claim, or when might there be.",
    writes=False,
    for_agents=False,
)
