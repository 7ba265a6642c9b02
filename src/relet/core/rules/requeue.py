"""requeue: give a dead letter or a cancelled task another life; an operator's verb."""

from __future__ import annotations

from typing import Final

from relet.core import limits
from relet.core.backend import Request
from relet.core.errors import Conflict, Error
from relet.core.fields import BulkItems, Cursor, TaskId
from relet.core.model import Cause, Instants, State, Task
from relet.core.operation import Operation
from relet.core.rules.absent import no_task
from relet.core.rules.cancel import Batch
from relet.core.rules.settle import schedule
from relet.core.states import move
from relet.core.tx import TaskFilter, TaskRow, Tx

DEAD = (State.FAILED, State.CANCELLED)


class Requeue(Request, frozen=True, kw_only=True):
    """Which task."""

    task_id: TaskId


async def requeue(tx: Tx, ask: Requeue) -> Task | Error:
    """Ready again: `attempt` keeps growing, the limits count anew, checkpoints stay."""
    held = await tx.lock_task(ask.task_id)
    if held is None:
        return await no_task(tx, ask.task_id)
    task, at = held
    if task.state not in DEAD:
        return Conflict(
            f"task {task.id} is {task.state}; only failed and cancelled ones can be requeued → relet show {task.id}",
            task_id=task.id, state=str(task.state),
        )  # fmt: skip
    await _revive(tx, task, at)
    answer = await tx.find_task(task.id)
    assert answer is not None, "locked above"
    return answer


class RequeueMany(Request, frozen=True, kw_only=True):
    """All failed and cancelled tasks that match, one bounded batch at a time."""

    which: TaskFilter
    dry_run: bool = False
    after: Cursor = 0
    most: BulkItems = limits.BULK_ITEMS_MAX


async def requeue_many(tx: Tx, ask: RequeueMany) -> Batch:
    """As `requeue`, over a filter; without a state in the filter only failed tasks are meant."""
    rows = await tx.lock_matching(ask.which, ask.after, ask.most)
    at = await tx.instants()
    wanted = DEAD if ask.which.state else (State.FAILED,)
    ids = [task.id for task in rows if task.state in wanted]
    if not ask.dry_run:
        for task in rows:
            if task.state in wanted:
                await _revive(tx, task, at)
    return Batch(ids=ids, cursor=rows[-1].seq if len(rows) == ask.most else None)


async def _revive(tx: Tx, task: TaskRow, at: Instants) -> None:
    was, why = str(task.state), task.reason
    task.state = move(task.state, Cause.REQUEUED)
    task.failures = task.losses = task.streak = 0
    task.reason = None
    if task.deadline_wall_ms is not None and task.deadline_wall_ms <= at.wall_ms:
        task.deadline_wall_ms = None  # whoever requeues it wants it done all the same
    schedule(task, at, 0)
    task.updated_wall_ms = at.wall_ms
    await tx.update_task(task)
    await tx.add_event(task, Cause.REQUEUED, at, None, None, was=was, reason=why)


REQUEUE: Final = Operation(
    "requeue", Requeue, Task, requeue, "Give a dead letter another life.", replay_safe=False, for_agents=False
)
REQUEUE_MANY: Final = Operation(
    "requeue_many",
    RequeueMany,
    Batch,
    requeue_many,
    "Give all dead letters that match another life.",
    for_agents=False,
)
