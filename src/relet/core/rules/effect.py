"""effect: what may be done about a try whose outcome is not known. Shared by every rule that meets one.

The states: started -> succeeded | failed (it certainly did not apply) | unknown; unknown -> started again, where the
contract allows it, or settled by a look, by evidence or by a person. Succeeded is final; a failed one may be started
again, since nothing happened, unless evidence says by then that it did.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, assert_never

import msgspec

from relet.core import limits
from relet.core.model import Cause, Instants
from relet.core.payload import digest
from relet.core.rules.answer import answer
from relet.core.tx import TaskRow, Tx
from relet.core.work import Contract, ContractKind, DecisionKind, EffectState, Outcome
from relet.core.work_tx import EffectRow, EvidenceRow

BY_HOLDER = "holder"
WAITS_FOR = "effect:"


class Next(StrEnum):
    """What a holder does with an effect now."""

    GO = "go"
    """Call; the try is recorded."""
    DONE = "done"
    """It has happened; here is its receipt."""
    LOOK = "look"
    """Ask the other side, by the program's own function."""
    ASK = "ask"
    """Park until a person has found out."""


class Verdict(NamedTuple):
    """What a contract allows for a try whose outcome is not known."""

    next: Next
    settles_in_ms: int = 0
    """For `LOOK`: a "not found" counts only from then on; "found" counts at once."""


def effect_id(tenant: str, task_id: str, name: str, key: str | None) -> str:
    """The full id: by task and name, or by the tenant's business key, and never by token or attempt."""
    made_of = ("task", tenant, task_id, name) if key is None else ("key", tenant, key)
    return f"e-{digest(*made_of)}"


def request_key(effect_id: str) -> str:
    """What goes out as the idempotency key: the same for each try of the same effect."""
    return f"relet-{digest('request', effect_id)}"


def verdict(effect: EffectRow, contract: Contract, at: Instants, timeout_ms: int) -> Verdict:
    """May an unknown try be repeated, and take so long? By the contract that the program declares now."""
    looked = Verdict(Next.LOOK, settles_in_ms(effect, contract, at))
    unsure = looked if contract.checked else Verdict(Next.ASK)
    match contract.kind:
        case ContractKind.KEYED:
            # The repeated call may arrive as late as its timeout allows, and must find the key remembered then.
            age_ms = max(at.wall_ms - effect.first_wall_ms, at.now_ms - effect.first_ms)
            return Verdict(Next.GO) if age_ms + timeout_ms < _trusted_ms(contract) else unsure
        case ContractKind.NATURAL | ContractKind.CONDITIONAL:
            return Verdict(Next.GO)
        case ContractKind.QUERYABLE | ContractKind.OPAQUE:
            return unsure
        case _:
            assert_never(contract.kind)


def settles_in_ms(effect: EffectRow, contract: Contract, at: Instants) -> int:
    """How long until the last try can no longer arrive, by whichever clock has counted less since."""
    wall_ms, now_ms = effect.send_by_wall_ms - at.wall_ms, effect.send_by_ms - at.now_ms
    return max(0, contract.settles_ms + max(wall_ms, now_ms))


def _trusted_ms(contract: Contract) -> int:
    """A tenth less than promised, at most a day: whose clock the other side forgets by is not known."""
    retention_ms = contract.retention_ms or 0
    return retention_ms - min(limits.DAY_MS, retention_ms // 10)


async def doubt_all(tx: Tx, task: TaskRow, token: int, at: Instants) -> None:
    """A lease ends: what it started and did not end is unknown from now on, and is listed as such."""
    for effect in await tx.lock_started(task.seq, token):
        await doubt(tx, task, effect, at, "the lease that started it has ended")


async def doubt(tx: Tx, task: TaskRow, effect: EffectRow, at: Instants, why: str) -> None:
    """Its outcome is unknown from now on."""
    effect.state, effect.error, effect.updated_wall_ms = EffectState.UNKNOWN, why, at.wall_ms
    await tx.update_effect(effect)
    await _note(tx, task, effect, at)


async def settle_effect(
    tx: Tx, effect: EffectRow, at: Instants, outcome: Outcome, receipt: str | None, *, by: str | None = None,
    task: TaskRow | None = None,
) -> None:  # fmt: skip
    """Its outcome is known from now on; tasks that were parked until it is go on.

    `task` is the row of the effect's own task, where the caller has it in hand.
    """
    assert effect.state in (EffectState.STARTED, EffectState.UNKNOWN), "settled once"
    effect.state = EffectState.SUCCEEDED if outcome is Outcome.APPLIED else EffectState.FAILED
    effect.receipt, effect.updated_wall_ms = receipt, at.wall_ms
    effect.error = None if outcome is Outcome.APPLIED else "it was not applied"
    effect.reconciled_by = by
    if outcome is Outcome.NOT_APPLIED:
        effect.cleared = effect.tries
    await tx.update_effect(effect)
    if task is None or task.seq != effect.task_seq:
        task = await tx.lock_task_of(effect.task_seq)
    task.unsettled -= 1
    await tx.update_task(task)
    await _note(tx, task, effect, at)
    known = settled_as(effect)
    assert known is not None, "settled above"
    for wait in await tx.lock_reconciling(wait_name(effect.id)):
        await answer(tx, await tx.lock_task_of(wait.task_seq), wait, at, *known)


async def correct(tx: Tx, task: TaskRow, effect: EffectRow, at: Instants, receipt: str | None) -> None:
    """Whoever said that it was not applied erred: the holder that had called came later, with the receipt."""
    assert effect.state is EffectState.FAILED, "what succeeded stands, and what is unknown is settled"
    effect.state, effect.receipt, effect.updated_wall_ms = EffectState.SUCCEEDED, receipt, at.wall_ms
    effect.error = effect.reconciled_by = None
    await tx.update_effect(effect)
    await _note(tx, task, effect, at)


async def add_receipt(tx: Tx, task: TaskRow, effect: EffectRow, at: Instants, receipt: str | None, by: str) -> None:
    """A person adds what another left out; the outcome stands as it was."""
    effect.receipt, effect.reconciled_by, effect.updated_wall_ms = receipt, by, at.wall_ms
    await tx.update_effect(effect)
    await _note(tx, task, effect, at)


async def _note(tx: Tx, task: TaskRow, effect: EffectRow, at: Instants) -> None:
    starter = await tx.find_lease(effect.token)
    holder = effect.reconciled_by or (None if starter is None else starter.holder)
    await tx.add_event(
        task, Cause.EFFECT_ENDED, at, effect.token, holder, effect=effect.id, name=effect.name,
        outcome=str(effect.state), attempt=effect.tries,
    )  # fmt: skip


async def testify(tx: Tx, effect: EffectRow, row: EvidenceRow) -> bool:
    """Keep what was said about a try by the one who made it; the same thing said twice is kept once.

    False when there was no such try: anybody else's word is none.
    """
    if (row.attempt, row.token) not in _starters(effect):
        return False
    kept = await tx.lock_evidence(effect.seq)
    said = (row.token, row.attempt, row.outcome, row.receipt)
    if len(kept) < limits.EVIDENCE_KEPT and all(
        (old.token, old.attempt, old.outcome, old.receipt) != said for old in kept
    ):
        await tx.insert_evidence(row)
    return True


def started_by(effect: EffectRow, token: int) -> str:
    """The starters of the latest tries, with the one that begins now."""
    starters = [*_starters(effect), (effect.tries, token)][-limits.EVIDENCE_KEPT :]
    return msgspec.json.encode(starters).decode()


def _starters(effect: EffectRow) -> list[tuple[int, int]]:
    return msgspec.json.decode(effect.starters, type=list[tuple[int, int]])


def settled_as(effect: EffectRow) -> tuple[DecisionKind, str | None, str] | None:
    """The answer to whoever waits for the effect's outcome; None while nobody knows it."""
    match effect.state:
        case EffectState.SUCCEEDED:
            return DecisionKind.ACCEPT, effect.receipt, effect.reconciled_by or BY_HOLDER
        case EffectState.FAILED:
            return DecisionKind.DENY, None, effect.reconciled_by or BY_HOLDER
        case EffectState.STARTED | EffectState.UNKNOWN:
            return None
        case _:
            assert_never(effect.state)


def wait_name(effect_id: str) -> str:
    """The name of the wait of a task that is parked until the effect is settled."""
    return f"{WAITS_FOR}{effect_id}"


def named_effect(name: str) -> str:
    """The id of the effect that a wait of this name is for."""
    return name.removeprefix(WAITS_FOR)
