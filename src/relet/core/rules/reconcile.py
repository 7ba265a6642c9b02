"""reconcile: a person says what became of an effect whose outcome nobody knows."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from relet.core.backend import Request
from relet.core.errors import Conflict, Error, NotFound
from relet.core.fields import Name, one_of
from relet.core.operation import Operation
from relet.core.payload import Maybe, maybe_text
from relet.core.rules.effect import add_receipt, settle_effect
from relet.core.rules.overtake import is_under_way, overtaken
from relet.core.tx import TaskRow, Tx
from relet.core.work import Effect, EffectState, Outcome
from relet.core.work_tx import EffectRow


class Reconcile(Request, frozen=True, kw_only=True):
    """The effect by its id, and what was found out by whom."""

    effect_id: Name
    outcome: Annotated[Outcome, one_of(Outcome.APPLIED, Outcome.NOT_APPLIED)]
    by: Name
    receipt: Maybe = msgspec.UNSET

    def at_odds(self) -> tuple[str, str] | None:
        """What was not applied has no receipt."""
        if self.outcome is Outcome.NOT_APPLIED and self.receipt is not msgspec.UNSET:
            return "receipt", "goes with applied; what was not applied has none"
        return None


async def reconcile(tx: Tx, ask: Reconcile) -> Effect | Error:
    """Settle it; a task that is parked for it goes on. Applied: with the receipt; not applied: it may be tried."""
    seen = await tx.find_effect(ask.effect_id)
    # The task first, then the effect: the order in which every rule locks.
    held = None if seen is None else await tx.lock_task(seen.task_id)
    effect = await tx.lock_effect(ask.effect_id)
    if held is None or effect is None:
        return NotFound(
            f"effect_id: there is no effect {ask.effect_id} here → relet effects", field="effect_id",
            effect=ask.effect_id,
        )  # fmt: skip
    if effect.state is EffectState.STARTED:
        if await is_under_way(tx, effect, held.task, held.at):
            return _in_flight(effect, held.task)
        effect = await overtaken(tx, effect, held.task, held.at)
    wanted = EffectState.SUCCEEDED if ask.outcome is Outcome.APPLIED else EffectState.FAILED
    receipt = maybe_text(ask.receipt)
    if effect.state is EffectState.UNKNOWN:
        await settle_effect(tx, effect, held.at, ask.outcome, receipt, by=ask.by)
    elif _adds_receipt(effect, ask, receipt):
        await add_receipt(tx, held.task, effect, held.at, receipt, ask.by)
    elif (effect.state, effect.receipt) != (wanted, receipt):
        return Conflict(
            f"effect {effect.id} ({effect.name!r}) is settled already: {effect.state}"
            f"{_by(effect)}; that stands and nothing was changed → relet effects --state {effect.state}",
            code="RELET-EFFECT-SETTLED", effect=effect.id, state=str(effect.state),
        )  # fmt: skip
    found = await tx.find_effect(effect.id)
    assert found is not None, "locked above"
    return found


def _in_flight(effect: EffectRow, owner: TaskRow) -> Conflict:
    return Conflict(
        f"effect {effect.id}: its try {effect.tries} is under way under a live lease (token {effect.token}); "
        f"nothing was changed. Wait for its end → relet show {owner.id}",
        code="RELET-EFFECT-BUSY", effect=effect.id, token=effect.token, task_id=owner.id,
    )  # fmt: skip


def _adds_receipt(effect: EffectRow, ask: Reconcile, receipt: str | None) -> bool:
    """Said to be applied by a person who had no receipt: whoever has one may add it."""
    settled = effect.state is EffectState.SUCCEEDED and effect.reconciled_by is not None
    return settled and effect.receipt is None and ask.outcome is Outcome.APPLIED and receipt is not None


def _by(effect: EffectRow) -> str:
    return "" if effect.reconciled_by is None else f" by {effect.reconciled_by}"


RECONCILE: Final = Operation(
    "reconcile", Reconcile, Effect, reconcile, "Say what became of an unknown effect.", for_agents=False
)
