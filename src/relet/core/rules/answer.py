"""answer: write down how a wait ended, and make its task ready. Shared by decide, signal, reconcile and timeouts."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from relet.core.fields import one_of
from relet.core.model import Cause, Instants, State, date
from relet.core.payload import decode
from relet.core.rules.settle import schedule
from relet.core.states import move
from relet.core.tx import TaskRow, Tx
from relet.core.work import BY_PERSON, NEED_VALUE, Decision, DecisionKind
from relet.core.work_tx import WaitRow

BY_TIME = "timeout"


class Fallback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decision that stands when nobody answered in time."""

    kind: Annotated[DecisionKind, one_of(*BY_PERSON, DecisionKind.SIGNAL)]
    value: msgspec.Raw


def lacks_value(kind: DecisionKind, value: msgspec.Raw, field: str) -> tuple[str, str] | None:
    """What is wrong with a decision that says nothing though its kind is to say something."""
    if kind in NEED_VALUE and bytes(value) == b"null":
        return field, f"is missing; {kind} carries a value: what was edited, or what is said"
    return None


async def answer(
    tx: Tx, task: TaskRow, wait: WaitRow, at: Instants, kind: DecisionKind, value: str | None, by: str
) -> None:
    """The first answer stands for this question for ever; its task is ready at once."""
    assert wait.decision is None, "asked once, answered once"
    wait.decision, wait.value, wait.decided_by, wait.decided_wall_ms = kind, value, by, at.wall_ms
    await tx.update_wait(wait)
    if task.state is not State.WAITING or task.wait_seq != wait.seq:
        return  # an effect that several tasks share: settled for this one while it was elsewhere
    task.state = move(task.state, Cause.ANSWERED)
    task.waiting_for = task.wait_seq = None
    schedule(task, at, 0)
    task.updated_wall_ms = at.wall_ms
    await tx.update_task(task)
    await tx.add_event(
        task, Cause.ANSWERED, at, None, None, name=wait.name, n=wait.n, decision=str(kind), by=by, digest=wait.digest
    )


async def time_out(tx: Tx, task: TaskRow, wait: WaitRow, at: Instants) -> None:
    """Nobody answered in time: the default of the question, or the plain fact."""
    if wait.fallback is None:
        await answer(tx, task, wait, at, DecisionKind.TIMEOUT, None, BY_TIME)
        return
    fallback = msgspec.json.decode(wait.fallback, type=Fallback)
    await answer(tx, task, wait, at, fallback.kind, bytes(fallback.value).decode(), BY_TIME)


async def close_unanswered(tx: Tx, most: int) -> tuple[int, bool]:
    """End up to `most` waits whose time has run out; answers how many, and whether more may be waiting."""
    tasks, at = await tx.lock_due_waits(most)
    for task in tasks:
        await run_out(tx, task, at)
    return len(tasks), len(tasks) == most


async def run_out(tx: Tx, task: TaskRow, at: Instants) -> None:
    """End the open wait of one task, whose time has run out."""
    assert task.wait_seq is not None, "a waiting task points at its question"
    await time_out(tx, task, await tx.lock_wait(task.wait_seq), at)


def is_over(wait: WaitRow, at: Instants) -> bool:
    """Has the time for an answer run out; at the very instant it has."""
    return wait.due_wall_ms is not None and wait.due_wall_ms <= at.wall_ms


def decision_of(wait: WaitRow) -> Decision:
    """The answer as callers see it."""
    assert wait.decision is not None and wait.decided_wall_ms is not None, "answered"
    value: Any = None if wait.value is None else decode(wait.value)
    return Decision(
        name=wait.name, n=wait.n, kind=wait.decision, value=value, by=wait.decided_by or "",
        at=date(wait.decided_wall_ms), digest=wait.digest,
    )  # fmt: skip
