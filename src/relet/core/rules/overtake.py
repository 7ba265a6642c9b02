"""overtake: a try on record as under way, whose lease may be gone. Shared by whoever meets one."""

from __future__ import annotations

from relet.core.model import Instants
from relet.core.rules.guard import lost_reason
from relet.core.rules.lapse import lapse
from relet.core.tx import TaskRow, Tx
from relet.core.work import EffectState
from relet.core.work_tx import EffectRow


async def is_under_way(tx: Tx, effect: EffectRow, owner: TaskRow, at: Instants) -> bool:
    """Does the lease that started the try still live."""
    starter = await tx.find_lease(effect.token)
    return starter is not None and lost_reason(starter, owner, at, even_cancelled=True) is None


async def overtaken(tx: Tx, effect: EffectRow, owner: TaskRow, at: Instants) -> EffectRow:
    """The effect as unknown; its lease, seen to have expired, is written down as lapsed, so nothing revives it."""
    starter = await tx.find_lease(effect.token)
    assert starter is not None and starter.ended is None, "the end of a lease doubts what it started"
    await lapse(tx, starter, owner, at)
    found = await tx.lock_effect(effect.id)
    assert found is not None and found.state is EffectState.UNKNOWN, "doubted with its lease"
    return found
