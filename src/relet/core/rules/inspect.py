"""inspect: look without touching; reads never write, and never move anything on."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.errors import Error, NotFound
from relet.core.fields import Cursor, Name, PageItems, TaskId
from relet.core.model import Event, Grant, Handle, LostReason, Rejection, Task
from relet.core.operation import Operation
from relet.core.rules.absent import no_task
from relet.core.rules.grant import granted
from relet.core.rules.guard import lost_reason, proven, stranger
from relet.core.tx import TaskFilter, Tx


class FindTask(Request, frozen=True, kw_only=True):
    """One task by id."""

    task_id: TaskId


async def find_task(tx: Tx, ask: FindTask) -> Task | Error:
    """The task as it stands."""
    return await tx.find_task(ask.task_id) or await no_task(tx, ask.task_id)


class ListTasks(Request, frozen=True, kw_only=True):
    """A page of tasks in the order in which they were made; `after` is the last id of the page before."""

    which: TaskFilter
    limit: PageItems = limits.PAGE_ITEMS
    after: TaskId | None = None


async def list_tasks(tx: Tx, ask: ListTasks) -> list[Task] | Error:
    """At most `limit` tasks that match."""
    page = await tx.find_tasks(ask.which, ask.after, ask.limit)
    return _unknown("after", ask.after or "") if page is None else page


class History(Request, frozen=True, kw_only=True):
    """All events of one task."""

    task_id: TaskId
    after: Cursor = 0
    limit: PageItems = limits.PAGE_ITEMS_MAX


async def history(tx: Tx, ask: History) -> list[Event] | Error:
    """What happened to the task, oldest first."""
    if await tx.find_task(ask.task_id) is None:
        return await no_task(tx, ask.task_id)
    return await tx.find_events(ask.task_id, None, ask.after, ask.limit)


class Changes(Request, frozen=True, kw_only=True):
    """Events after a sequence number, of one task, one queue, or all; `after=None` asks where the end is."""

    after: Cursor | None = None
    queue: Name | None = None
    task_id: TaskId | None = None
    limit: PageItems = limits.PAGE_ITEMS_MAX


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Events, and the sequence number to go on from."""

    events: list[Event]
    cursor: int


async def changes(tx: Tx, ask: Changes) -> Page:
    """What changed since; empty when nothing did."""
    if ask.after is None:
        return Page(events=[], cursor=await tx.last_event())
    events = await tx.find_events(ask.task_id, ask.queue, ask.after, ask.limit)
    return Page(events=events, cursor=events[-1].seq if events else ask.after)


class Rejections(Request, frozen=True, kw_only=True):
    """Refused writes, of one task or all, newest first; `before` is the last `seq` of the page before."""

    task_id: TaskId | None = None
    before: Cursor | None = None
    limit: PageItems = limits.PAGE_ITEMS


async def rejections(tx: Tx, ask: Rejections) -> list[Rejection]:
    """The bounded feed of writes that were refused under a lost lease."""
    return await tx.find_rejections(ask.task_id, ask.before, ask.limit)


class CountTasks(Request, frozen=True, kw_only=True):
    """Figures of one queue, or of all."""

    queue: Name | None = None


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks stand where. `live` and `lapsed` divide the leased ones."""

    ready: int = 0
    delayed: int = 0
    leased: int = 0
    live: int = 0
    at_risk: int = 0
    """Live, but past the time of the next heartbeat."""
    lapsed: int = 0
    """Expired and not yet taken back."""
    waiting: int = 0
    reconciling: int = 0
    """Waiting until somebody says what became of an effect."""
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    takeovers: int = 0


class QueueStats(Figures, frozen=True, kw_only=True):
    """The figures of one queue."""

    queue: str


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures by queue and in sum, and refused writes by reason."""

    queues: list[QueueStats]
    total: Figures
    rejections: dict[str, int]


async def stats(tx: Tx, ask: CountTasks) -> Stats:
    """Counts as of now; cheap however many tasks have finished."""
    queues = [msgspec.convert(row, QueueStats) for row in await tx.count_tasks(ask.queue)]
    total = Figures(**{name: sum(getattr(queue, name) for queue in queues) for name in Figures.__struct_fields__})
    return Stats(queues=queues, total=total, rejections=await tx.count_rejections())


class Look(Request, frozen=True, kw_only=True):
    """The lease of a handle, for another process."""

    handle: Handle


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """The grant with the time left now, and why it is lost when it is."""

    grant: Grant
    lost: LostReason | None


async def look(tx: Tx, ask: Look) -> Looked | Error:
    """Judge without writing: an expiry seen here is written down by the next verb that writes."""
    held = await tx.lock_lease(ask.handle.token)
    if held is None or not proven(tx, ask.handle):
        return await stranger(tx, ask.handle)
    lease, task, at = held
    return Looked(grant=await granted(tx, lease, task, at), lost=lost_reason(lease, task, at))


def _unknown(field: str, task_id: str) -> NotFound:
    return NotFound(f"{field}: there is no task {task_id} here", field=field, task_id=task_id)


LOOK: Final = Operation("look", Look, Looked, look, "The lease of a handle.", writes=False)
TASK: Final = Operation("task", FindTask, Task, find_task, "One task as it stands.", writes=False)
TASKS: Final = Operation("tasks", ListTasks, list[Task], list_tasks, "A page of tasks.", writes=False)
HISTORY: Final = Operation("history", History, list[Event], history, "What happened to a task.", writes=False)
CHANGES: Final = Operation("changes", Changes, Page, changes, "What changed since.", writes=False)
STATS: Final = Operation("stats", CountTasks, Stats, stats, "How many tasks stand where.", writes=False)
REJECTIONS: Final = Operation(
    "rejections", Rejections, list[Rejection], rejections, "Writes that were refused.", writes=False
)
