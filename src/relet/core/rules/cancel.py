"""cancel: stop tasks; a held one is asked to give way, and commit order decides against completion."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.errors import Conflict, Error
from relet.core.fields import BulkItems, Cursor, TaskId, Text
from relet.core.model import Cause, Instants, State, Task
from relet.core.operation import Operation
from relet.core.rules.absent import no_task
from relet.core.rules.finish import is_called_off
from relet.core.rules.lapse import lapse
from relet.core.rules.settle import call_off, is_finished
from relet.core.tx import TaskFilter, TaskRow, Tx


class Cancel(Request, frozen=True, kw_only=True):
    """Which task, and why."""

    task_id: TaskId
    reason: Text


async def cancel(tx: Tx, ask: Cancel) -> Task | Error:
    """Cancelled at once when nobody holds it; else `cancel_requested`, until the holder gives way or lapses."""
    held = await tx.lock_task(ask.task_id)
    if held is None:
        return await no_task(tx, ask.task_id)
    task, at = held
    if task.state in (State.DONE, State.FAILED):
        return Conflict(
            f"task {task.id} is {task.state} already; nothing was changed → relet show {task.id}",
            task_id=task.id, state=str(task.state),
        )  # fmt: skip
    if not is_finished(task) and not is_called_off(task):
        await _stop(tx, task, at, ask.reason)
    answer = await tx.find_task(task.id)
    assert answer is not None, "locked above"
    return answer


async def _stop(tx: Tx, task: TaskRow, at: Instants, reason: str) -> None:
    """Cancel one task that is not finished, and of which nobody asked it before."""
    task.cancel_reason, task.updated_wall_ms = reason, at.wall_ms
    if task.state is not State.LEASED:
        call_off(task)
        await tx.update_task(task)
        await tx.add_event(task, Cause.CANCELLED, at, None, None, reason=reason)
        return
    lease = await tx.find_lease(task.token)
    assert lease is not None, "a leased task has a lease"
    if lease.expires_ms <= at.now_ms:
        await lapse(tx, lease, task, at)
        return
    await tx.mark_cancelling(lease.token)
    await tx.update_task(task)
    await tx.add_event(task, Cause.CANCEL_REQUESTED, at, lease.token, lease.holder, reason=reason)


class CancelMany(Request, frozen=True, kw_only=True):
    """All unfinished tasks that match, one bounded batch at a time; `after` is the last batch's `cursor`."""

    which: TaskFilter
    reason: Text
    dry_run: bool = False
    after: Cursor = 0
    most: BulkItems = limits.BULK_ITEMS_MAX


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Ids that were (or would be) changed, and where to go on; `cursor` is None after the last batch."""

    ids: list[str]
    cursor: int | None


async def cancel_many(tx: Tx, ask: CancelMany) -> Batch:
    """As `cancel`, over a filter."""
    rows = await tx.lock_matching(ask.which, ask.after, ask.most)
    at = await tx.instants()
    ids: list[str] = []
    for task in rows:
        if is_finished(task) or is_called_off(task):
            continue
        if not ask.dry_run:
            await _stop(tx, task, at, ask.reason)
        ids.append(task.id)
    return Batch(ids=ids, cursor=rows[-1].seq if len(rows) == ask.most else None)


CANCEL: Final = Operation("cancel", Cancel, Task, cancel, "Stop a task.", for_agents=False)
CANCEL_MANY: Final = Operation(
    "cancel_many", CancelMany, Batch, cancel_many, "Stop all tasks that match.", for_agents=False
)
