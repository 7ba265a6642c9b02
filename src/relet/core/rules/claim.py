"""claim: take tasks under new leases; judge and write together, so that two claimers have one winner."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.errors import Conflict, Error, LeaseLost
from relet.core.fields import CallId, ClaimItems, Kinds, Name, Queues, TaskId, TtlMs, entries
from relet.core.model import Grant, Handle, Instants, State
from relet.core.operation import Operation
from relet.core.payload import digest
from relet.core.rules.absent import no_task
from relet.core.rules.answer import run_out
from relet.core.rules.grant import Knobs, are_readable, grant, granted
from relet.core.rules.guard import lost_reason, proven, refuse, stranger
from relet.core.rules.lapse import close_all_lapsed, close_lapsed, close_overdue, lapse, miss_deadline
from relet.core.rules.room import has_share_room, occupy, room
from relet.core.rules.settle import overdue
from relet.core.rules.turns import Round
from relet.core.tx import Ahead, QueueRow, TaskRow, Tx


class Claim(Request, frozen=True, kw_only=True):
    """Up to `n` tasks from these queues, in their order, or the one task of `task_id`.

    `handlers` are a worker's own knobs by kind. A repeated `request_id` gets the same leases again. A `call_id` is
    made for each call; the transport repeats it, with `again`, when it could not know the outcome.
    """

    holder: Name
    queues: Queues = []
    task_id: TaskId | None = None
    n: ClaimItems = 1
    kinds: Kinds | None = None
    ttl_ms: TtlMs | None = None
    handlers: Annotated[dict[Name, Knobs], entries(limits.KINDS_PER_CLAIM_MAX)] = {}
    handle: Handle | None = None
    request_id: Name | None = None
    call_id: CallId | None = None
    again: bool = False
    after: Name | None = None
    """What is done before it in the same request, as a digest: the request id stands for that as well."""

    def at_odds(self) -> tuple[str, str] | None:
        """Queues are looked through, a task is named."""
        if bool(self.queues) == (self.task_id is not None):
            return "queues", "and task_id: give one of them; the names of queues, or a task's id"
        if self.handle is not None and self.task_id is None:
            return "handle", "goes with task_id: it lets its last holder take the task before its delay ends"
        if self.kinds is not None and self.task_id is not None:
            return "kinds", "does not go with task_id, which names the very task; leave it out"
        return None


async def claim(tx: Tx, ask: Claim) -> list[Grant] | Error:
    """New leases with new tokens; an empty list when there is nothing to take.

    Closes what has lapsed, in bounded batches, before it looks; reads no clock but the one of its locks.
    """
    if (ask.request_id is not None or ask.again) and (replayed := await _replay(tx, ask)) is not None:
        return replayed
    if ask.task_id is not None:
        return await _claim_task(tx, ask, ask.task_id)
    grants: list[Grant] = []
    for queue in ask.queues:
        if len(grants) < ask.n:
            grants += await _from_queue(tx, ask, queue, ask.n - len(grants))
    return grants


async def _from_queue(tx: Tx, ask: Claim, name: str, n: int) -> list[Grant]:
    grants: list[Grant] = []
    for _ in range(limits.LAPSE_BATCHES_PER_CLAIM):
        ahead = await tx.look_ahead(name)
        if ahead.lapsed:
            await close_lapsed(tx)
        if ahead.queue is not None and ahead.queue.paused:
            break
        if ahead.due:
            await _promote(tx, name)
        if ahead.overdue:
            await close_overdue(tx)
        if ahead.queue is not None and ahead.queue.is_bounded:
            return await _within_bounds(tx, ask, ahead, ahead.queue, n)
        first = ahead.first
        if ahead.is_clear and (first is None or (n == 1 and ask.kinds is None and are_readable(first.labels))):
            return [*grants, *await _first(tx, ask, ahead)]
        grants += await _take(tx, ask, ahead.queue, name, n - len(grants))
        if len(grants) == n or not ahead.lapsed:
            break
    return grants


async def _within_bounds(tx: Tx, ask: Claim, ahead: Ahead, queue: QueueRow, n: int) -> list[Grant]:
    """From a queue that has shares or limits: no more than there is room for, each share in its turn."""
    if ahead.lapsed:
        await close_all_lapsed(tx)
    n = await room(tx, queue, ahead.at, n)
    if queue.shared_from is None:
        grants = await _take(tx, ask, queue, queue.name, n)
    else:
        grants = await _in_turn(tx, ask, queue, n)
    if grants and queue.is_moved:
        await tx.note_turn(queue)
    return grants


async def _in_turn(tx: Tx, ask: Claim, queue: QueueRow, n: int) -> list[Grant]:
    grants: list[Grant] = []
    turns = Round(queue)
    while len(grants) < n:
        tasks, at = await turns.next(tx, ask.kinds, n - len(grants))
        if not tasks:
            break
        for task in tasks:
            if len(grants) < n and are_readable(task.labels) and await is_free(tx, task, at):
                grants.append(await grant_to(tx, ask, queue, task, at))
                turns.served(task)
    return grants


async def _first(tx: Tx, ask: Claim, ahead: Ahead) -> list[Grant]:
    """The task that was seen while looking ahead, as most claims need no second look."""
    task = ahead.first
    if task is None or not (task.exclusive is None or await is_free(tx, task, ahead.at)):
        return []
    return [await grant_to(tx, ask, ahead.queue, task, ahead.at)]


async def _promote(tx: Tx, name: str) -> None:
    """Delayed tasks that are due stand with the ready ones from now on; they read as ready all along: no event.
    So do those whose question ran out of time, with an event each.

    Many at once, so that what is due is taken by priority and not by the time at which it fell due.
    """
    due, at = await tx.lock_due(name, limits.PROMOTED_PER_CLAIM)
    for task in due:
        if task.state is State.WAITING:
            await run_out(tx, task, at)
            continue
        task.delayed, task.due_ms, task.due_wall_ms = False, None, None
        await tx.update_task(task)


async def _take(tx: Tx, ask: Claim, queue: QueueRow | None, name: str, n: int) -> list[Grant]:
    grants: list[Grant] = []
    after: tuple[int, int] | None = None
    page = max(1, min(n, limits.READY_PAGE))
    while len(grants) < n:
        tasks, at = await tx.lock_ready(name, ask.kinds, after, page)
        for task in tasks:
            if len(grants) < n and are_readable(task.labels) and await is_free(tx, task, at):
                grants.append(await grant_to(tx, ask, queue, task, at))
        if len(tasks) < page:
            break
        after, page = (tasks[-1].priority, tasks[-1].seq), limits.READY_PAGE
    return grants


async def is_free(tx: Tx, task: TaskRow, at: Instants) -> bool:
    """May this ready task be taken now, or is its exclusive key busy; an expired blocker is closed."""
    if task.exclusive is None:
        return True
    blocker = await tx.lock_exclusive(task.exclusive)
    if blocker is None:
        return True
    if at.now_ms < blocker.expires_ms:
        return False
    await lapse(tx, blocker, await tx.lock_task_of(blocker.task_seq), at)
    return True


async def _claim_task(tx: Tx, ask: Claim, task_id: str) -> list[Grant] | Error:
    """This very task, whatever its place in the queue; with the last token's handle, before its delay too."""
    held = await tx.lock_task(task_id)
    if held is None:
        return await no_task(tx, task_id)
    if ask.handle is not None and not proven(tx, ask.handle):
        return await stranger(tx, ask.handle)
    task, at = held
    if task.state is State.LEASED:
        last = await tx.find_lease(task.token)
        assert last is not None, "a leased task has a lease"
        if at.now_ms < last.expires_ms:
            return []
        await lapse(tx, last, task, at)
    elif task.state is State.WAITING and task.delayed and _is_due(task, at):
        await run_out(tx, task, at)
    elif task.state is State.READY and overdue(task, at):
        await miss_deadline(tx, task, at)
    if task.state is not State.READY:
        return Conflict(
            f"task_id: task {task_id} is {task.state}, only a ready one can be claimed → relet show {task_id}",
            field="task_id", task_id=task_id, state=str(task.state),
        )  # fmt: skip
    if not _is_due(task, at) and (ask.handle is None or ask.handle.token != task.token):
        return []
    queue = await tx.lock_limits(task.queue)
    if not (queue is None or await _lets_in(tx, queue, task, at)) or not await is_free(tx, task, at):
        return []
    granted = await grant_to(tx, ask, queue, task, at)
    if queue is not None and queue.rate is not None:
        await tx.note_turn(queue)
    return [granted]


async def _lets_in(tx: Tx, queue: QueueRow, task: TaskRow, at: Instants) -> bool:
    """Would the queue grant this very task now: it is not paused, and not at a limit."""
    if queue.paused:
        return False
    if queue.is_counted:
        await close_all_lapsed(tx)
    return await room(tx, queue, at, 1) == 1 and await has_share_room(tx, queue, task)


def _is_due(task: TaskRow, at: Instants) -> bool:
    if task.due_wall_ms is not None:
        return task.due_wall_ms <= at.wall_ms
    return task.due_ms is None or task.due_ms <= at.now_ms


async def grant_to(tx: Tx, ask: Claim, queue: QueueRow | None, task: TaskRow, at: Instants) -> Grant:
    """The lease of one free task for whoever claims."""
    levels = (ask.handlers.get(task.kind), queue)
    if task.exclusive is not None:
        at = await tx.instants()  # there may have been a wait for its key
    made = await grant(
        tx, task, at, ask.holder, ask.ttl_ms, levels, call_id=ask.call_id, request_id=ask.request_id,
        request_digest=_digest(ask) if ask.request_id else None,
    )  # fmt: skip
    if queue is not None and queue.is_bounded:
        await occupy(tx, queue, task, at)
    return made


async def misused(tx: Tx, ask: Claim) -> Conflict | None:
    """The refusal of a request id that was used before with other arguments."""
    if ask.request_id is None:
        return None
    leases, _ = await tx.lock_requested(ask.request_id)
    if not leases or leases[0].request_digest == _digest(ask):
        return None
    return Conflict(
        f"request_id: {ask.request_id} was used before with other arguments; use a new one. Nothing was changed",
        field="request_id",
    )


async def _replay(tx: Tx, ask: Claim) -> list[Grant] | Error | None:
    """The leases that this request made before, with the time left *now*; never a new grant."""
    if (refusal := await misused(tx, ask)) is not None:
        return refusal
    if ask.request_id is not None:
        leases, at = await tx.lock_requested(ask.request_id)
    else:
        leases, at = await tx.lock_called(ask.call_id or "")
    if not leases:
        return None
    grants: list[Grant] = []
    gone: LeaseLost | None = None
    for lease in leases:
        task = await tx.lock_task_of(lease.task_seq)
        reason = lost_reason(lease, task, at)
        if reason is None:
            grants.append(await granted(tx, lease, task, at))
            continue
        if lease.ended is None and lease.expires_ms <= at.now_ms:
            await lapse(tx, lease, task, at)
        gone = refuse(tx, lease, task, at, reason)
    return grants or gone


def _digest(ask: Claim) -> str:
    # Not the holder: by default it names the process, and another process may repeat the request.
    said = (ask.queues, ask.task_id, ask.n, ask.kinds, ask.ttl_ms, ask.handle, ask.after)
    return digest(msgspec.json.encode(said).decode())


CLAIM: Final = Operation("claim", Claim, list[Grant], claim, "Take tasks under new leases.")
