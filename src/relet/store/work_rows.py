"""Rows of durable work as nouns; the order of columns is the order of the fields."""

from __future__ import annotations

import msgspec

from relet.core.model import date, maybe_date
from relet.core.payload import decode, maybe_raw
from relet.core.rules.answer import decision_of
from relet.core.work import (
    Artifact,
    Checkpoint,
    Contract,
    DecisionKind,
    Effect,
    EffectState,
    Evidence,
    Outcome,
    Step,
    Wait,
    WaitKind,
)
from relet.core.work_tx import EffectRow, EvidenceRow, Kept, StepRow, WaitRow
from relet.store.rows import Row
from relet.store.unreadable import stored


@stored("step")
def kept_of(row: Row) -> Kept:
    """A step for its next holder."""
    return Kept(
        name=row[0], slot=row[1], fingerprint=row[2], took_ms=row[3], cost=row[4], value=maybe_raw(row[5])
    )  # fmt: skip


@stored("step")
def step_of(row: Row) -> Step:
    """A step for everybody."""
    step = StepRow(*row)
    numbered = step.slot.startswith("#")
    return Step(
        name=step.name, key=None if numbered else step.slot[1:], n=int(step.slot[1:]) if numbered else None,
        token=step.token, at=date(step.wall_ms), took_ms=step.took_ms, cost=step.cost, value=decode(step.value),
    )  # fmt: skip


@stored("checkpoint")
def checkpoint_of(row: Row) -> Checkpoint:
    """One version of a checkpoint."""
    return Checkpoint(name=row[0], version=row[1], token=row[2], at=date(row[3]), value=decode(row[4]))


@stored("artifact")
def artifact_of(row: Row) -> Artifact:
    """Bytes by name."""
    return Artifact(name=row[0], uri=row[1], sha256=row[2], size=row[3], token=row[4], at=date(row[5]))


@stored("wait")
def wait_of(row: Row) -> WaitRow:
    """A question as stored."""
    wait = WaitRow(*row)
    wait.kind = WaitKind(wait.kind)
    if wait.decision is not None:
        wait.decision = DecisionKind(wait.decision)
    return wait


@stored("wait", named=3)
def question_of(row: Row) -> Wait:
    """A question for everybody; the columns before its own come from its task."""
    task_id, queue, open_seq = row[:3]
    wait = wait_of(row[3:])
    return Wait(
        task_id=task_id, queue=queue, name=wait.name, n=wait.n, kind=wait.kind, ask=decode(wait.ask),
        digest=wait.digest, token=wait.token, opened_at=date(wait.opened_wall_ms),
        due_at=maybe_date(wait.due_wall_ms),
        open=open_seq == wait.seq, decision=None if wait.decision is None else decision_of(wait),
    )  # fmt: skip


@stored("effect")
def effect_of(row: Row) -> EffectRow:
    """An effect as stored."""
    effect = EffectRow(*row)
    effect.contract, effect.state = msgspec.json.decode(row[7], type=Contract), EffectState(effect.state)
    return effect


@stored("evidence")
def evidence_of(row: Row) -> EvidenceRow:
    """Something that was said about a try."""
    said = EvidenceRow(*row)
    said.outcome = Outcome(said.outcome)
    return said


@stored("effect", named=3)
def effect_view(row: Row, said: list[EvidenceRow]) -> Effect:
    """An effect for everybody; the columns before its own come from its task."""
    effect = effect_of(row[2:])
    return Effect(
        id=effect.id, task_id=row[0], queue=row[1], name=effect.name, key=effect.key, state=effect.state,
        contract=effect.contract, tries=effect.tries, token=effect.token,
        receipt=None if effect.receipt is None else decode(effect.receipt), error=effect.error,
        reconciled_by=effect.reconciled_by, started_at=date(effect.first_wall_ms),
        updated_at=date(effect.updated_wall_ms), evidence=[_said(one) for one in said],
    )  # fmt: skip


def _said(said: EvidenceRow) -> Evidence:
    return Evidence(
        token=said.token, attempt=said.attempt, outcome=said.outcome,
        receipt=None if said.receipt is None else decode(said.receipt), error=said.error, at=date(said.wall_ms),
    )  # fmt: skip
