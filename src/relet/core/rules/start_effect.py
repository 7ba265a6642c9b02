"""start_effect: record a side effect before it is tried, or say why it must not be tried now."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.backend import Request
from relet.core.errors import Conflict, Error
from relet.core.fields import CallId, Name, SpanMs
from relet.core.model import Cause, Handle, Instants
from relet.core.operation import Operation
from relet.core.payload import Maybe, maybe_raw
from relet.core.rules.effect import Next, Verdict, correct, effect_id, request_key, settle_effect, started_by, verdict
from relet.core.rules.guard import Repeat, hold
from relet.core.rules.overtake import is_under_way, overtaken
from relet.core.states import move
from relet.core.tx import Holding, Tx
from relet.core.work import Contract, EffectState, Outcome
from relet.core.work_tx import EffectRow, EvidenceRow


class StartEffect(Request, frozen=True, kw_only=True):
    """An effect by name, or by a business key of the tenant. `timeout_ms` bounds the try that follows."""

    handle: Handle
    name: Name
    payload: msgspec.Raw
    contract: Contract
    timeout_ms: SpanMs
    key: Name | None = None
    call_id: CallId
    """Made once for each call: repeating it is answered as it was, and starts no other try."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """What to do now, and with what."""

    next: Next
    id: str
    key: str
    """For the other side: the same for each try."""
    attempt: int
    """Which try this is, from 1."""
    repeated: bool
    """An earlier try may have applied."""
    receipt: Maybe = msgspec.UNSET
    """Set when it has happened."""
    settles_in_ms: int = 0


async def start_effect(tx: Tx, ask: StartEffect) -> Start | Error:
    """Commit the try under the lease before anything is sent. Same key, other payload: refused, nothing changed."""
    held = await hold(tx, ask.handle)
    if isinstance(held, Error):
        return held
    assert not isinstance(held, Repeat), "only verbs that end a lease repeat"
    lease, task, at = held
    fingerprint = tx.fingerprint(bytes(ask.payload).decode())
    identity = effect_id(task.tenant, task.id, ask.name, ask.key)
    effect = await tx.lock_effect(identity)
    if effect is None:
        effect = EffectRow(
            seq=0, tenant=task.tenant, id=identity, task_seq=task.seq, name=ask.name, key=ask.key,
            fingerprint=fingerprint, contract=ask.contract, state=EffectState.STARTED, tries=0, token=lease.token,
            first_wall_ms=at.wall_ms, first_ms=at.now_ms, send_by_wall_ms=0, receipt=None, error=None,
            reconciled_by=None, updated_wall_ms=at.wall_ms, call_id=ask.call_id,
        )  # fmt: skip
        effect.seq = await tx.insert_effect(effect)
        return await _go(tx, ask, held, effect)
    if effect.fingerprint != fingerprint:
        return _other_payload(task.id, effect)
    return await _again(tx, ask, held, effect)


async def _again(tx: Tx, ask: StartEffect, held: Holding, effect: EffectRow) -> Start | Error:
    """An effect that was tried before."""
    at = held.at
    if effect.state is EffectState.STARTED and (effect.token, effect.call_id) == (held.lease.token, ask.call_id):
        # The reply was lost, and nothing was sent: the time to send it counts from now.
        _send_by(effect, at, ask.timeout_ms)
        await tx.update_effect(effect)
        return _start(Next.GO, effect, repeated=effect.repeated)
    if effect.state is EffectState.STARTED:
        owner = await tx.lock_task_of(effect.task_seq)
        if await is_under_way(tx, effect, owner, at):
            return _busy(held.task.id, effect, at)
        effect = await overtaken(tx, effect, owner, at)
    if (said := await _testimony(tx, effect)) is not None:
        if effect.state is EffectState.UNKNOWN:
            await settle_effect(tx, effect, at, said.outcome, said.receipt, task=held.task)
        elif effect.state is EffectState.FAILED and said.outcome is Outcome.APPLIED:
            await correct(tx, held.task, effect, at, said.receipt)
    if effect.state is EffectState.UNKNOWN or effect.state is EffectState.FAILED:
        await _adopt(tx, held, effect)
    if effect.state is EffectState.UNKNOWN and effect.contract != ask.contract:
        effect.contract = ask.contract  # what the program declares now is what a look is judged by
        await tx.update_effect(effect)
    match effect.state:
        case EffectState.SUCCEEDED:
            return _start(Next.DONE, effect)
        case EffectState.FAILED:
            return await _go(tx, ask, held, effect)
        case _:
            found = verdict(effect, ask.contract, at, ask.timeout_ms)
            return await _go(tx, ask, held, effect) if found.next is Next.GO else _start(found.next, effect, found)


async def _testimony(tx: Tx, effect: EffectRow) -> EvidenceRow | None:
    """What the starter of the newest try said too late to have authority; its present holder may use it."""
    said = [one for one in await tx.lock_evidence(effect.seq) if one.outcome is not Outcome.UNKNOWN]
    applied = [one for one in said if one.outcome is Outcome.APPLIED]
    newest = [one for one in said if (one.token, one.attempt) == (effect.token, effect.tries)]
    # One try that applied settles it; that the newest was not applied tells nothing of an unknown one before it.
    settling = applied or ([] if effect.repeated else newest)
    return settling[0] if settling else None


async def _adopt(tx: Tx, held: Holding, effect: EffectRow) -> None:
    """An effect by business key passes to the task that takes it up now."""
    if effect.task_seq == held.task.seq:
        return
    if effect.state is EffectState.UNKNOWN:
        before = await tx.lock_task_of(effect.task_seq)
        before.unsettled -= 1
        await tx.update_task(before)
        held.task.unsettled += 1
        await tx.update_task(held.task)
    effect.task_seq = held.task.seq
    await tx.update_effect(effect)


async def _go(tx: Tx, ask: StartEffect, held: Holding, effect: EffectRow) -> Start:
    lease, task, at = held
    if effect.state is not EffectState.UNKNOWN:
        # Unknown ones are counted already.
        task.unsettled += 1
        await tx.update_task(task)
    if effect.state is EffectState.FAILED:
        effect.first_wall_ms, effect.first_ms = (
            at.wall_ms,
            at.now_ms,
        )  # nothing was applied, so there is nothing yet for the other side to forget
    effect.state, effect.token, effect.tries = EffectState.STARTED, lease.token, effect.tries + 1
    _send_by(effect, at, ask.timeout_ms)
    effect.updated_wall_ms = at.wall_ms
    effect.contract, effect.error, effect.call_id = ask.contract, None, ask.call_id
    effect.reconciled_by, effect.starters = None, started_by(effect, lease.token)
    await tx.update_effect(effect)
    task.state = move(task.state, Cause.EFFECT_STARTED)
    await tx.add_event(
        task, Cause.EFFECT_STARTED, at, lease.token, lease.holder, effect=effect.id, name=effect.name,
        attempt=effect.tries, repeated=effect.repeated or None,
    )  # fmt: skip
    return _start(Next.GO, effect, repeated=effect.repeated)


def _send_by(effect: EffectRow, at: Instants, timeout_ms: int) -> None:
    effect.send_by_wall_ms, effect.send_by_ms = at.wall_ms + timeout_ms, at.now_ms + timeout_ms


def _start(following: Next, effect: EffectRow, found: Verdict | None = None, *, repeated: bool = False) -> Start:
    receipt = maybe_raw(effect.receipt or "null" if following is Next.DONE else None)
    return Start(
        next=following, id=effect.id, key=request_key(effect.id), attempt=effect.tries, repeated=repeated,
        receipt=receipt, settles_in_ms=0 if found is None else found.settles_in_ms,
    )  # fmt: skip


OTHER_PAYLOAD = "RELET-EFFECT-CONFLICT"
BUSY = "RELET-EFFECT-BUSY"


def _other_payload(task_id: str, effect: EffectRow) -> Conflict:
    return Conflict(
        f"effect {effect.key or effect.name!r} of task {task_id}: it is on record with another payload "
        f"({effect.state}, {effect.tries} tries); one key stands for one payload. Nothing was sent, nothing changed; "
        f"give the other effect another name or key → relet effects --task {task_id}",
        code=OTHER_PAYLOAD, field="payload", effect=effect.id, name=effect.name, state=str(effect.state),
    )  # fmt: skip


def _busy(task_id: str, effect: EffectRow, at: Instants) -> Conflict:
    return Conflict(
        f"effect {effect.key or effect.name!r}: try {effect.tries} of it is under way under token {effect.token}; "
        f"task {task_id} sent nothing. Ask again when that try has ended",
        code=BUSY, effect=effect.id, token=effect.token, retry_in_ms=max(0, effect.send_by_wall_ms - at.wall_ms),
    )  # fmt: skip


START_EFFECT: Final = Operation(
    "start_effect", StartEffect, Start, start_effect, "Record a side effect before it is tried."
)
