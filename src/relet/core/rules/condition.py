"""condition: how the work in a store stands, as far as somebody may have to act on it."""

from __future__ import annotations

from typing import Final

from relet.core import limits
from relet.core.backend import Request
from relet.core.doctor.condition import Condition
from relet.core.operation import Operation
from relet.core.tx import Tx


class AskCondition(Request, frozen=True, kw_only=True):
    """All queues of the tenant."""


async def condition(tx: Tx, ask: AskCondition) -> Condition:  # noqa: ARG001 - there is nothing to choose
    """What `doctor` judges: bounded in its work and its answer, however large the store is."""
    now_ms, wall_ms = await tx.instants()
    queues = await tx.find_queue_knobs(limits.DOCTOR_QUEUES)
    ready = [one for queue in queues for one in await tx.find_ready_kinds(queue.name, limits.DOCTOR_READY)]
    return Condition(
        tenant=tx.tenant,
        wall_ms=wall_ms,
        lapsed=await tx.find_lapsed(now_ms),
        quiet=await tx.find_quiet(now_ms),
        queues=queues,
        ready=ready,
        recent=await tx.find_recent_claims(limits.DOCTOR_LEASES),
        busy=await tx.find_busy(now_ms),
        unknown_effects=await tx.find_unknown(wall_ms - limits.DOCTOR_EFFECT_MS, wall_ms),
        stalled=await tx.find_stalled(wall_ms - limits.DOCTOR_QUESTION_MS, wall_ms),
        unanswered=await tx.find_unanswered(wall_ms - limits.DOCTOR_OVERDUE_MS, wall_ms),
        dead=await tx.find_dead(wall_ms - limits.DOCTOR_DEAD_MS, limits.DOCTOR_DEAD),
    )


CONDITION: Final = Operation(
    "condition",
    AskCondition,
    Condition,
    condition,
    "What somebody may have to act on.",
    writes=False,
    for_agents=False,
)
