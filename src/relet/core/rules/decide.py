"""decide: a person's answer to an open question; the first one stands, and time may have answered before."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from relet.core.backend import Request
from relet.core.errors import Conflict, Error, Forbidden
from relet.core.fields import Name, TaskId, one_of
from relet.core.model import State, date
from relet.core.operation import Operation
from relet.core.rules.absent import no_task
from relet.core.rules.answer import answer, decision_of, is_over, lacks_value, time_out
from relet.core.tx import Held, TaskRow, Tx
from relet.core.work import BY_PERSON, Decision, DecisionKind, WaitKind
from relet.core.work_tx import WaitRow


class Decide(Request, frozen=True, kw_only=True):
    """The answer to the question that a task waits with; `digest` says what it was shown, where it is given."""

    task_id: TaskId
    name: Name
    kind: Annotated[DecisionKind, one_of(*BY_PERSON)]
    by: Name
    value: msgspec.Raw
    digest: Name | None = None
    key_id: Name | None = None
    """The credential that answers, by the word of the service; what is sent in its place counts for nothing."""

    def at_odds(self) -> tuple[str, str] | None:
        """Some kinds of answers say something."""
        return lacks_value(self.kind, self.value, "value")


async def decide(tx: Tx, ask: Decide) -> Decision | Error:
    """Keep the decision and make the task ready; the same decision said twice is said once."""
    held = await tx.lock_task(ask.task_id)
    if held is None:
        return await no_task(tx, ask.task_id)
    task, at = held
    wait = await _open(tx, task, ask.name)
    if wait is None:
        return await _nothing_open(tx, ask, held)
    if is_over(wait, at):
        await time_out(tx, task, wait, at)
        return _over(task, wait)
    if wait.kind is not WaitKind.APPROVAL:
        return _not_a_question(task, wait)
    if ask.key_id is not None and ask.key_id == await tx.find_asker(task.seq):
        return _own_question(task, wait, ask.key_id)
    if ask.digest is not None and ask.digest != wait.digest:
        return Conflict(
            f"task {task.id}: the decision on {wait.name!r} was made on another question (digest {ask.digest}) than "
            f"the one that is open ({wait.digest}); nothing was decided. Look at what is asked now "
            f"→ relet show {task.id}",
            code="RELET-OTHER-QUESTION", task_id=task.id, name=wait.name, digest=wait.digest,
        )  # fmt: skip
    await answer(tx, task, wait, at, ask.kind, bytes(ask.value).decode(), ask.by)
    return decision_of(wait)


async def _open(tx: Tx, task: TaskRow, name: str) -> WaitRow | None:
    if task.state is not State.WAITING or task.waiting_for != name:
        return None
    assert task.wait_seq is not None, "a waiting task points at its question"
    return await tx.lock_wait(task.wait_seq)


async def _nothing_open(tx: Tx, ask: Decide, held: Held) -> Decision | Conflict:
    task = held.task
    last = await tx.lock_last_wait(task.seq, ask.name)
    if last is None or last.decision is None:
        return Conflict(
            f"name: task {task.id} ({task.state}) does not wait for a decision on {ask.name!r}"
            f"{_what_is_open(task)}; a decision counts for an open question only, nothing was kept "
            f"→ relet show {task.id}",
            code="RELET-NOT-ASKED", field="name", task_id=task.id, state=str(task.state),
            waiting_for=task.waiting_for,
        )  # fmt: skip
    same = (last.decision, last.value or "null", last.decided_by) == (ask.kind, bytes(ask.value).decode(), ask.by)
    if same and ask.digest in (None, last.digest):
        return decision_of(last)
    assert last.decided_wall_ms is not None, "decided"
    return Conflict(
        f"task {task.id}: {ask.name!r} was decided already: {last.decision} by {last.decided_by} at "
        f"{date(last.decided_wall_ms):%Y-%m-%d %H:%M:%S} UTC; that one stands and nothing was changed "
        f"→ relet show {task.id}",
        code="RELET-ALREADY-DECIDED", task_id=task.id, name=last.name, n=last.n, decision=str(last.decision),
        by=last.decided_by, digest=last.digest,
    )  # fmt: skip


def _what_is_open(task: TaskRow) -> str:
    return "" if task.waiting_for is None else f", but for {task.waiting_for!r}"


def _over(task: TaskRow, wait: WaitRow) -> Conflict:
    return Conflict(
        f"task {task.id}: the time to decide on {wait.name!r} had run out before this answer came; the task goes on "
        f"with {wait.decision} (by {wait.decided_by}) and nothing was changed → relet show {task.id}",
        code="RELET-WAIT-OVER", task_id=task.id, name=wait.name, n=wait.n, decision=str(wait.decision),
    )  # fmt: skip


def _own_question(task: TaskRow, wait: WaitRow, key_id: str) -> Forbidden:
    return Forbidden(
        f"task {task.id}: {wait.name!r} was asked with this very key ({key_id}), and nobody answers their own "
        "question; nothing was decided. Decide with another key → relet token create NAME --role approver",
        code="RELET-OWN-QUESTION", task_id=task.id, name=wait.name, key=key_id,
    )  # fmt: skip


def _not_a_question(task: TaskRow, wait: WaitRow) -> Conflict:
    way = {
        WaitKind.SIGNAL: f"send it → relet signal {task.id} {wait.name}",
        WaitKind.RECONCILE: "settle the effect → relet effects",
    }.get(wait.kind, "it goes on by itself")
    return Conflict(
        f"name: task {task.id} waits with {wait.name!r} for a {wait.kind}, not for a decision; nothing was "
        f"decided: {way}",
        code="RELET-NOT-ASKED", field="name", task_id=task.id, wait=str(wait.kind),
    )  # fmt: skip


DECIDE: Final = Operation("decide", Decide, Decision, decide, "Answer an open question.", for_agents=False)
