"""end_effect: what became of a try; from a lost holder it is kept as evidence, and moves nothing."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.backend import Request
from relet.core.errors import Conflict, Error, LeaseLost, NotFound
from relet.core.fields import Name, Nth, Text
from relet.core.model import Handle
from relet.core.operation import Operation
from relet.core.payload import Maybe, maybe_raw, maybe_text
from relet.core.rules.effect import doubt, settle_effect, settles_in_ms, testify
from relet.core.rules.guard import Repeat, hold
from relet.core.tx import Holding, Tx
from relet.core.work import EffectState, Outcome
from relet.core.work_tx import EffectRow, EvidenceRow

EARLY: Final = "RELET-EFFECT-EARLY"
"""Refused: what was not found may still arrive."""


class EndEffect(Request, frozen=True, kw_only=True):
    """The outcome of one try. `looked`: found by asking the other side about an unknown one."""

    handle: Handle
    effect_id: Name
    attempt: Nth
    outcome: Outcome
    receipt: Maybe = msgspec.UNSET
    error: Text | None = None
    looked: bool = False


class EffectEnded(msgspec.Struct, frozen=True, kw_only=True):
    """Where the effect stands now, with its receipt once it succeeded."""

    state: EffectState
    receipt: Maybe = msgspec.UNSET


async def end_effect(tx: Tx, ask: EndEffect) -> EffectEnded | Error:
    """Settle the try under the lease that started it; states only move forward."""
    held = await hold(tx, ask.handle, even_cancelled=True)
    effect = await tx.lock_effect(ask.effect_id)
    if isinstance(held, LeaseLost):
        if effect is not None:
            await testify(tx, effect, await _evidence(tx, ask, effect))  # or nobody's word, which is not kept
        return held
    if isinstance(held, Error):
        return held
    assert not isinstance(held, Repeat), "only verbs that end a lease repeat"
    if effect is None:
        return NotFound(f"effect_id: there is no effect {ask.effect_id} here", field="effect_id")
    if effect.state is EffectState.SUCCEEDED:
        return _now(effect)  # settled already: by this very try whose reply was lost, or by another that stands
    if ask.looked:
        return await _looked(tx, ask, held, effect)
    if (effect.token, effect.tries) != (held.lease.token, ask.attempt) or effect.state is not EffectState.STARTED:
        if await testify(tx, effect, await _evidence(tx, ask, effect)):
            return _now(effect)
        return _no_such_try(ask, effect)
    if ask.outcome is Outcome.UNKNOWN:
        await doubt(tx, held.task, effect, held.at, ask.error or "no answer")
    elif ask.outcome is Outcome.NOT_APPLIED and effect.repeated:
        # It speaks for this try; one before it may have applied, and what nobody knows stays unknown.
        why = f"try {effect.tries} was not applied, an earlier one may have been: {ask.error or 'no reason given'}"
        await doubt(tx, held.task, effect, held.at, why)
    else:
        await settle_effect(tx, effect, held.at, ask.outcome, maybe_text(ask.receipt), task=held.task)
        effect.error = ask.error or effect.error
        await tx.update_effect(effect)
    return _now(effect)


async def _looked(tx: Tx, ask: EndEffect, held: Holding, effect: EffectRow) -> EffectEnded | Error:
    """What a look has found: "found" is final, "not found" counts once the last try can no longer arrive."""
    if effect.state is not EffectState.UNKNOWN or effect.task_seq != held.task.seq:
        return _now(effect)
    wait_ms = settles_in_ms(effect, effect.contract, held.at)
    if ask.outcome is Outcome.NOT_APPLIED and wait_ms:
        return Conflict(
            f"effect {effect.id}: it was not found, but its last try may arrive until {wait_ms} ms from now; nothing "
            "was settled, look again then",
            code=EARLY, effect=effect.id, settles_in_ms=wait_ms,
        )  # fmt: skip
    if ask.outcome is not Outcome.UNKNOWN:
        await settle_effect(tx, effect, held.at, ask.outcome, maybe_text(ask.receipt), task=held.task)
    return _now(effect)


async def _evidence(tx: Tx, ask: EndEffect, effect: EffectRow) -> EvidenceRow:
    at = await tx.instants()
    return EvidenceRow(
        effect_seq=effect.seq, token=ask.handle.token, attempt=ask.attempt, outcome=ask.outcome,
        receipt=maybe_text(ask.receipt), error=ask.error, wall_ms=at.wall_ms,
    )  # fmt: skip


def _no_such_try(ask: EndEffect, effect: EffectRow) -> Conflict:
    return Conflict(
        f"attempt: effect {effect.id} has no try {ask.attempt} under token {ask.handle.token}, its last is "
        f"{effect.tries} under token {effect.token}; nothing was kept. Say what became of a try of your own",
        code="RELET-NO-TRY", field="attempt", effect=effect.id, attempt=ask.attempt,
    )  # fmt: skip


def _now(effect: EffectRow) -> EffectEnded:
    return EffectEnded(state=effect.state, receipt=maybe_raw(effect.receipt))


END_EFFECT: Final = Operation("end_effect", EndEffect, EffectEnded, end_effect, "Say what became of a side effect.")
