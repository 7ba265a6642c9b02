"""reconcile: a person says what became of an effect whose outcome nobody knows."""

from __future__ import annotations

import msgspec

from relet.core.backend import Request
from relet.core.errors import Conflict, Error, NotFound
from relet.core.payload import Maybe, maybe_text
from relet.core.rules.effect import doubt, settle_effect
from relet.core.rules.guard import lost_reason
from relet.core.tx import Tx
from relet.core.work import Effect, EffectState, Outcome
from relet.core.work_tx import EffectRow


class Reconcile(Request, frozen=True, kw_only=True):
    """The effect by its id, and what was found out by whom."""

    effect_id: str
    outcome: Outcome
    by: str
    receipt: Maybe = msgspec.UNSET


async def reconcile(tx: Tx, ask: Reconcile) -> Effect | Error:
    """Settle it; a task that is parked for it goes on. Applied: with the receipt; not applied: it may be tried."""
    effect = await tx.lock_effect(ask.effect_id)
    if effect is None:
        return NotFound(
            f"effect_id: there is no effect {ask.effect_id} here → relet effects", field="effect_id",
            effect=ask.effect_id,
        )  # fmt: skip
    if effect.state is EffectState.STARTED and (refusal := await _in_flight(tx, effect)) is not None:
        return refusal
    wanted = EffectState.SUCCEEDED if ask.outcome is Outcome.APPLIED else EffectState.FAILED
    receipt = maybe_text(ask.receipt)
    if effect.state is EffectState.UNKNOWN:
        await settle_effect(tx, effect, await tx.instants(), ask.outcome, receipt, by=ask.by)
    elif (effect.state, effect.receipt) != (wanted, receipt):
        return Conflict(
            f"effect {effect.id} ({effect.name!r}) is settled already: {effect.state}"
            f"{_by(effect)}; that stands and nothing was changed → relet effects --state {effect.state}",
            code="RELET-EFFECT-SETTLED", effect=effect.id, state=str(effect.state),
        )  # fmt: skip
    found = await tx.find_effect(effect.id)
    assert found is not None, "locked above"
    return found


async def _in_flight(tx: Tx, effect: EffectRow) -> Conflict | None:
    at = await tx.instants()
    starter, owner = await tx.find_lease(effect.token), await tx.find_task_of(effect.task_seq)
    if starter is not None and lost_reason(starter, owner, at, even_cancelled=True) is None:
        return Conflict(
            f"effect {effect.id}: its try {effect.tries} is under way under a live lease (token {effect.token}); "
            f"nothing was changed. Wait for its end → relet show {owner.id}",
            code="RELET-EFFECT-BUSY", effect=effect.id, token=effect.token, task_id=owner.id,
        )  # fmt: skip
    await doubt(tx, owner, effect, at, "the lease that started it has ended")
    return None


def _by(effect: EffectRow) -> str:
    return "" if effect.reconciled_by is None else f" by {effect.reconciled_by}"
