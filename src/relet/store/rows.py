"""Rows of a SQL engine as nouns; the order of columns is the order of the fields."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from relet.core.access import Role, Scope
from relet.core.keys_tx import KeyRow
from relet.core.model import Cause, End, Event, Instants, LostReason, Rejection, State, Task, date, maybe_date
from relet.core.payload import decode
from relet.core.rules.turns import WITHOUT_SHARE
from relet.core.tx import LeaseRow, QueueRow, TaskRow
from relet.store.unreadable import stored

Row = tuple[Any, ...]
STATES: Final = {str(state): state for state in State}
"""Found sooner than by calling the enumeration."""
_SCOPES: Final = msgspec.json.Decoder(list[Scope])
_QUEUES: Final = msgspec.json.Decoder(list[str])


@stored("task", named=2)
def task_of(row: Row) -> TaskRow:
    """A task as stored."""
    task = TaskRow(*row)
    task.state, task.delayed = STATES.get(task.state) or State(task.state), bool(task.delayed)
    return task


@stored("lease")
def lease_of(row: Row) -> LeaseRow:
    """A lease as stored."""
    lease = LeaseRow(*row)
    lease.cancelling, lease.excused = bool(lease.cancelling), bool(lease.excused)
    if lease.ended is not None:
        lease.ended = End(lease.ended)
    return lease


@stored("queue", named=1)
def queue_of(row: Row) -> QueueRow:
    """A queue's knobs."""
    queue = QueueRow(*row)
    queue.paused = bool(queue.paused)
    if (queue.rate is None) != (queue.rate_ms is None) or queue.rate == 0 or queue.rate_ms == 0:
        raise ValueError(f"{queue.rate} in {queue.rate_ms} ms is no rate")
    return queue


class _Beside(NamedTuple):
    """What stands before the columns of a task: its input, and its last lease where it has one."""

    payload: Any
    holder: Any
    claimed_wall_ms: Any
    beat_wall_ms: Any
    beat_ms: Any
    expires_ms: Any
    ttl_ms: Any


@stored("task", named=9)
def view_of(row: Row, at: Instants) -> Task:
    """A task as callers see it; the columns before the task's own come from its input and its last lease."""
    beside, task = _Beside(*row[:7]), task_of(row[7:])
    held = task.state is State.LEASED
    if held and beside.expires_ms is None:
        raise ValueError(f"{task.token} is the token of no lease")
    due_ms = task.due_wall_ms
    if task.due_ms is not None:
        due_ms = at.wall_ms + task.due_ms - at.now_ms
    return Task(
        id=task.id, queue=task.queue, kind=task.kind, tenant=task.tenant, state=task.state,
        live=held and at.now_ms < beside.expires_ms, attempt=task.attempt, failures=task.failures, losses=task.losses,
        token=task.token or None, holder=beside.holder, input=decode(beside.payload),
        result=None if task.result is None else decode(task.result), error=task.error, code=task.code,
        reason=task.reason, labels=decode(task.labels) if task.labels else {}, priority=task.priority,
        exclusive=task.exclusive, share=None if task.share == WITHOUT_SHARE else task.share,
        progress=task.progress, waiting_for=task.waiting_for,
        cancel_requested=task.cancel_reason is not None, created=False,
        created_at=date(task.created_wall_ms), updated_at=date(task.updated_wall_ms),
        due_at=maybe_date(due_ms), deadline=maybe_date(task.deadline_wall_ms),
        claimed_at=maybe_date(beside.claimed_wall_ms if held else None),
        expires_at=maybe_date(at.wall_ms + beside.expires_ms - at.now_ms if held else None),
        renew_by=maybe_date(at.wall_ms + beside.beat_ms + beside.ttl_ms // 3 - at.now_ms if held else None),
        last_heartbeat=maybe_date(beside.beat_wall_ms if held else None),
    )  # fmt: skip


@stored("key")
def key_of(row: Row) -> KeyRow:
    """An API key as stored; its times are dates, since it has no others."""
    key = KeyRow(*row)
    key.role, key.scopes = Role(key.role), _SCOPES.decode(row[5])
    key.queues = None if row[6] is None else _QUEUES.decode(row[6])
    for wall_ms in (key.created_wall_ms, key.expires_wall_ms, key.revoked_wall_ms, key.used_wall_ms):
        maybe_date(wall_ms)
    return key


@stored("event")
def event_of(row: Row) -> Event:
    """One change."""
    return Event(
        seq=row[0], task_id=row[1], queue=row[2], kind=Cause(row[3]), state=State(row[4]) if row[4] else None,
        token=row[5], holder=row[6], at=date(row[7]), detail=decode(row[8]),
    )  # fmt: skip


@stored("rejection")
def rejection_of(row: Row) -> Rejection:
    """One refused write."""
    return Rejection(
        seq=row[0], task_id=row[1], verb=row[2], holder=row[3], token=row[4], current_token=row[5],
        reason=LostReason(row[6]), late_ms=row[7], at=date(row[8]), result=None if row[9] is None else decode(row[9]),
    )  # fmt: skip
