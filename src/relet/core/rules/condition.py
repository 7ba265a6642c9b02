"""condition: how the work in a store stands, as far as somebody may have to act on it."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.doctor.condition import Condition, QueueKnobs, ReadyKind
from relet.core.model import Instants
from relet.core.operation import Operation
from relet.core.rules.room import held_back
from relet.core.tx import QueueRow, Tx


class AskCondition(Request, frozen=True, kw_only=True):
    """All queues of the tenant."""


async def condition(tx: Tx, ask: AskCondition) -> Condition:  # noqa: ARG001 - there is nothing to choose
    """What `doctor` judges: bounded in its work and its answer, however large the store is."""
    at = await tx.instants()
    now_ms, wall_ms = at
    queues: list[QueueKnobs] = []
    ready: list[ReadyKind] = []
    for queue in await tx.find_queue_knobs(limits.DOCTOR_QUEUES):
        row = await tx.find_queue(queue.name)
        most = None if row is None else row.share_concurrency
        kinds = await tx.find_ready_kinds(queue.name, most, limits.DOCTOR_READY)
        ready += kinds
        queues.append(await _bounded(tx, queue, row, at) if row is not None and kinds else queue)
    return Condition(
        tenant=tx.tenant,
        wall_ms=wall_ms,
        lapsed=await tx.find_lapsed(now_ms),
        quiet=await tx.find_quiet(now_ms),
        queues=queues,
        ready=ready,
        recent=await tx.find_recent_claims(wall_ms - limits.DOCTOR_RECENT_MS, limits.DOCTOR_LEASES),
        busy=await tx.find_busy(now_ms),
        repeated=await tx.find_repeated(wall_ms, limits.DOCTOR_REPEATS, limits.DOCTOR_LEASES),
        unknown_effects=await tx.find_unknown(wall_ms - limits.DOCTOR_EFFECT_MS, wall_ms),
        stalled=await tx.find_stalled(wall_ms - limits.DOCTOR_QUESTION_MS, wall_ms),
        unanswered=await tx.find_unanswered(wall_ms - limits.DOCTOR_OVERDUE_MS, wall_ms),
        dead=await tx.find_dead(wall_ms - limits.DOCTOR_DEAD_MS, limits.DOCTOR_DEAD),
    )


async def _bounded(tx: Tx, queue: QueueKnobs, row: QueueRow, at: Instants) -> QueueKnobs:
    """The queue with what keeps its tasks waiting by its own limits."""
    back = await held_back(tx, row, None, at)
    return msgspec.structs.replace(
        queue, held_back=None if back is None else str(back.why),
        apart_ms=0 if row.rate is None or row.rate_ms is None else -(-row.rate_ms // row.rate),
    )  # fmt: skip


CONDITION: Final = Operation(
    "condition",
    AskCondition,
    Condition,
    condition,
    "What somebody may have to act on.",
    writes=False,
    for_agents=False,
)
