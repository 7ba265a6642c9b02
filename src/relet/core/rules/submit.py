"""submit: put tasks into a queue, all or none; repeating it by id is safe."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.errors import Conflict, Error
from relet.core.fields import (
    Attempts,
    DurationMs,
    Labels,
    MaxHoldMs,
    Name,
    Priority,
    SpanMs,
    TaskId,
    TtlMs,
    WallMs,
    items,
)
from relet.core.model import Cause, Handle, Instants, State, Task
from relet.core.operation import Operation
from relet.core.payload import encode
from relet.core.rules.guard import hold
from relet.core.rules.settle import schedule
from relet.core.states import move
from relet.core.tx import TaskRow, Tx


class NewTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task to be: its id and its input as canonical JSON."""

    id: TaskId
    input: msgspec.Raw


class Submit(Request, frozen=True, kw_only=True):
    """Tasks for one queue, with options that hold for all of them. Durations in milliseconds."""

    queue: Name
    kind: Name
    tasks: Annotated[list[NewTask], items(0, limits.SUBMIT_ITEMS_MAX)]
    priority: Priority = 0
    delay_ms: DurationMs = 0
    at_wall_ms: WallMs | None = None
    deadline_wall_ms: WallMs | None = None
    ttl_ms: TtlMs | None = None
    timeout_ms: SpanMs | None = None
    max_hold_ms: MaxHoldMs | None = None
    max_attempts: Attempts | None = None
    max_losses: Attempts | None = None
    exclusive: Name | None = None
    share: Name | None = None
    labels: Labels | None = None
    under: Handle | None = None
    """A lease that must be held: children are submitted by its holder alone."""

    def at_odds(self) -> tuple[str, str] | None:
        """When it is due is said in one way."""
        if self.delay_ms and self.at_wall_ms is not None:
            return "at_wall_ms", "cannot stand beside delay_ms; give one of them"
        return None


async def submit(tx: Tx, ask: Submit) -> list[Task] | Error:
    """Insert what is new; answer what is there already when its content is the same.

    Content is queue, kind and input. Same id, other content: `Conflict`, and none of the tasks is stored.
    """
    if ask.under is not None and isinstance(held := await hold(tx, ask.under), Error):
        return held
    at = await tx.instants()
    known: dict[str, str] = {}
    for new in ask.tasks:
        text = bytes(new.input).decode()
        if known.setdefault(new.id, text) != text:
            return _conflict(new.id, "twice in one call with different input")
        found = await tx.lock_task(new.id)
        if found is None:
            continue
        if (found.task.queue, found.task.kind) != (ask.queue, ask.kind):
            return _conflict(new.id, f"in queue {found.task.queue!r} with kind {found.task.kind!r}")
        if await tx.find_input(found.task.seq) != text:
            return _conflict(new.id, "with other input")
    if ask.share is not None:
        await tx.open_shares(ask.queue)
    made: set[str] = set()
    for task_id, text in known.items():
        if await tx.lock_task(task_id) is None:
            row = new_row(tx, ask, task_id, at)
            seq = await tx.insert_task(row, text)
            if seq is None:
                raise _gone(task_id)  # with what was inserted before it
            row.seq = seq
            await tx.add_event(row, Cause.SUBMITTED, at, None, None, queue=ask.queue)
            made.add(task_id)
    return [await _answer(tx, new.id, made) for new in ask.tasks]


async def _answer(tx: Tx, task_id: str, made: set[str]) -> Task:
    task = await tx.find_task(task_id)
    assert task is not None, "inserted above, or found before it"
    return msgspec.structs.replace(task, created=task_id in made)


def new_row(tx: Tx, ask: Submit, task_id: str, at: Instants) -> TaskRow:
    """A task as it begins; its sequence number is not known yet."""
    row = TaskRow(
        seq=0, tenant=tx.tenant, id=task_id, queue=ask.queue, kind=ask.kind,
        state=move(None, Cause.SUBMITTED), delayed=False, due_ms=None, due_wall_ms=None, priority=ask.priority,
        attempt=1, failures=0, losses=0, streak=0, token=0, cancel_reason=None,
        ttl_ms=ask.ttl_ms, timeout_ms=ask.timeout_ms, max_hold_ms=ask.max_hold_ms,
        max_attempts=ask.max_attempts, max_losses=ask.max_losses, deadline_wall_ms=ask.deadline_wall_ms,
        exclusive=ask.exclusive, share=ask.share, labels=encode("labels", ask.labels) if ask.labels else None,
        progress=None, error=None, code=None, reason=None, result=None,
        created_wall_ms=at.wall_ms, updated_wall_ms=at.wall_ms,
    )  # fmt: skip
    schedule(row, at, ask.delay_ms)
    if ask.at_wall_ms is not None and ask.at_wall_ms > at.wall_ms:
        row.delayed, row.due_wall_ms = True, ask.at_wall_ms
    assert row.state is State.READY and row.priority <= limits.PRIORITY_MAX, "checked at the border"
    return row


def _gone(task_id: str) -> Conflict:
    return Conflict(
        f"id: task {task_id} had finished and was pruned; an id gets no second life. Nothing was stored; choose "
        "another id",
        code="RELET-GONE", field="id", task_id=task_id,
    )  # fmt: skip


def _conflict(task_id: str, how: str) -> Conflict:
    return Conflict(
        f"id: task {task_id} exists {how}; an id stands for one content (queue, kind, input). "
        f"Nothing was stored; choose another id, or look → relet show {task_id}",
        field="id", task_id=task_id,
    )  # fmt: skip


SUBMIT: Final = Operation("submit", Submit, list[Task], submit, "Put tasks into a queue, all or none.")
