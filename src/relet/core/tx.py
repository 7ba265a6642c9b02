"""What a rule may ask of storage inside one transaction, and the rows that it gets.

A lock returns rows *and the instants that they may be compared with*: the clock is read after the lock, since a
waiter would otherwise judge by a time before it waited. Writes name whole rows; the engine knows which columns.

`gc=False`, here and where else structs are made for each task: they hold no containers and so are in no cycle, and
a collector that looks through the thousands of a batch takes a tenth of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from relet.core.fields import Labels, Name
from relet.core.figures_tx import FiguresTx
from relet.core.keys_tx import KeysTx
from relet.core.model import Cause, End, Event, Handle, Instants, LostReason, Rejection, State, Task
from relet.core.turns_tx import TurnsTx
from relet.core.work_tx import EffectRow, WorkTx


class TaskRow(msgspec.Struct, gc=False):
    """One task as stored; the input lives apart, so that changes of state never rewrite it."""

    seq: int
    tenant: str
    id: str
    queue: str
    kind: str
    state: State
    delayed: bool
    due_ms: int | None
    due_wall_ms: int | None
    priority: int
    attempt: int
    failures: int
    losses: int
    streak: int
    """Losses since the last save or step."""
    token: int
    cancel_reason: str | None
    """Set while a cancel is asked for and not yet done."""
    ttl_ms: int | None
    timeout_ms: int | None
    max_hold_ms: int | None
    max_attempts: int | None
    max_losses: int | None
    deadline_wall_ms: int | None
    exclusive: str | None
    share: str | None
    labels: str | None
    progress: str | None
    error: str | None
    code: str | None
    reason: str | None
    result: str | None
    created_wall_ms: int
    updated_wall_ms: int
    waiting_for: str | None = None
    """The name of the open question that it is parked for."""
    wait_seq: int | None = None
    unsettled: int = 0
    """Effects started by this task whose outcome is not known."""
    last_event: int = 0
    """The end of its history, where the engine keeps it as a chain."""


class LeaseRow(msgspec.Struct, gc=False):
    """One grant, kept for ever. Open until `ended` is set; live while open and before `expires_ms`."""

    token: int
    task_seq: int
    tenant: str
    holder: str
    attempt: int
    ttl_ms: int
    timeout_ms: int | None
    max_hold_ms: int | None
    max_attempts: int
    max_losses: int
    backoff_base_ms: int
    backoff_cap_ms: int
    exclusive: str | None
    claimed_ms: int
    claimed_wall_ms: int
    beat_ms: int
    beat_wall_ms: int
    expires_ms: int
    check_ms: int
    """When a sweep should look next; grows lazily, so that a renewal touches no index."""
    cancelling: bool = False
    excused: bool = False
    """Extended by an outage and not renewed since: its lapse is no loss."""
    call_id: str | None = None
    request_id: str | None = None
    request_digest: str | None = None
    took_over: int | None = None
    ended: End | None = None
    ended_ms: int | None = None
    ended_wall_ms: int | None = None
    end_digest: str | None = None
    end_answer: str | None = None


class QueueRow(msgspec.Struct):
    """Knobs of a queue, each None where the default holds."""

    tenant: str
    name: str
    paused: bool
    ttl_ms: int | None
    timeout_ms: int | None
    max_hold_ms: int | None
    max_attempts: int | None
    max_losses: int | None
    retention_ms: int | None = None
    """How long its finished tasks are kept; None for ever."""
    concurrency: int | None = None
    """How many of its leases may be live at once."""
    share_concurrency: int | None = None
    """How many of one share."""
    rate: int | None = None
    """How many grants in `rate_ms`, evenly spread."""
    rate_ms: int | None = None
    shared_from: int | None = None
    """The first task that may have a share; None as long as none had one."""
    last_share: str | None = None
    """Who was served last: the next turn is of the one after it."""
    full_us: int | None = None
    """When all that the rate lets through at once is there again, in microseconds of store time."""

    @property
    def is_counted(self) -> bool:
        """Do its leases take places."""
        return self.concurrency is not None or self.share_concurrency is not None

    @property
    def is_moved(self) -> bool:
        """Does a grant move whose turn it is, or its bucket."""
        return self.shared_from is not None or self.rate is not None

    @property
    def is_bounded(self) -> bool:
        """Has it shares or limits, so that a claim must ask whose turn it is, and whether there is room."""
        return self.is_moved or self.is_counted


class HolderRow(msgspec.Struct, frozen=True):
    """A lock that a process of this machine holds; its file is the one of this inode, in this run of the machine."""

    lock: str
    inode: int
    boot_id: str


class Held(NamedTuple):
    """A locked task and the only instants that it may be compared with."""

    task: TaskRow
    at: Instants


class Holding(NamedTuple):
    """A locked lease, its locked task, and the instants to judge them by."""

    lease: LeaseRow
    task: TaskRow
    at: Instants


class Ahead(msgspec.Struct, frozen=True):
    """What must be seen to before the ready tasks of a queue are looked at, the queue's knobs, and a first task."""

    lapsed: bool
    """The time to look at some open lease has come."""
    due: bool
    """Some delayed task of the queue is due."""
    overdue: bool
    """Some ready task is past its deadline."""
    queue: QueueRow | None
    first: TaskRow | None
    """The locked task that a claim of any kind takes next, once there is nothing to be seen to."""
    at: Instants

    @property
    def is_clear(self) -> bool:
        """There is nothing to be seen to."""
        return not (self.lapsed or self.due or self.overdue)


class Waiting(NamedTuple):
    """What waits in a queue: is some task to be had now, when the next ones fall due, are grants paused."""

    ready: bool
    due_ms: int | None
    due_wall_ms: int | None
    paused: bool


class TaskFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks are meant; every condition that is set must hold."""

    queue: Name | None = None
    kind: Name | None = None
    state: State | None = None
    labels: Labels | None = None


class Tx(WorkTx, FiguresTx, TurnsTx, KeysTx, Protocol):
    """The port. Rules that write lock first, decide, and write last."""

    tenant: str

    # Locks: rows with the instants read after they were held.
    async def instants(self) -> Instants: ...
    async def lock_task(self, task_id: str) -> Held | None: ...
    async def lock_lease(self, token: int) -> Holding | None: ...
    async def lock_holdings(self, tokens: Sequence[int]) -> dict[int, Holding]: ...
    async def lock_leases(self, tokens: Sequence[int]) -> tuple[dict[int, LeaseRow], Instants]: ...
    async def lock_ready(
        self, queue: str, kinds: Sequence[str] | None, after: tuple[int, int] | None, limit: int
    ) -> tuple[list[TaskRow], Instants]: ...
    async def look_ahead(self, queue: str) -> Ahead: ...
    async def lock_due(self, queue: str, limit: int) -> tuple[list[TaskRow], Instants]: ...
    async def lock_overdue(self, limit: int) -> tuple[list[TaskRow], Instants]: ...
    async def lock_to_check(self, limit: int) -> tuple[list[LeaseRow], Instants]: ...
    async def lock_exclusive(self, key: str) -> LeaseRow | None: ...
    async def lock_requested(self, request_id: str) -> tuple[list[LeaseRow], Instants]: ...
    async def lock_called(self, call_id: str) -> tuple[list[LeaseRow], Instants]: ...
    async def lock_bound(self, lock: str, limit: int) -> tuple[list[LeaseRow], Instants]: ...
    async def lock_matching(self, which: TaskFilter, after: int, limit: int) -> list[TaskRow]: ...

    # Writes.
    async def insert_task(self, row: TaskRow, payload: str) -> int | None: ...
    async def update_task(self, row: TaskRow) -> None: ...
    async def take_task(self, row: TaskRow) -> None: ...
    async def complete_task(self, row: TaskRow) -> None: ...
    async def insert_lease(self, row: LeaseRow) -> None: ...
    async def extend_leases(self, beats: Sequence[LeaseRow]) -> None: ...
    async def note_late_beats(self, left_ms: dict[int, int]) -> None: ...
    async def postpone_checks(self, leases: Sequence[LeaseRow]) -> None: ...
    async def end_lease(self, row: LeaseRow) -> None: ...
    async def mark_cancelling(self, token: int) -> None: ...
    async def loosen_lease(self, token: int) -> None: ...
    async def put_holder(self, row: HolderRow) -> None: ...
    async def drop_holder(self, lock: str) -> None: ...
    async def put_checkpoint(self, task_seq: int, name: str, token: int, wall_ms: int, value: str) -> int: ...
    async def put_queue(self, row: QueueRow) -> None: ...
    async def add_event(
        self, task: TaskRow, cause: Cause, at: Instants, token: int | None, holder: str | None, **detail: Any
    ) -> None: ...
    async def next_token(self) -> int: ...
    async def count_lapses(self, at: Instants, n: int) -> int: ...

    async def remove_task(self, task: TaskRow, result_digest: str | None, at: Instants) -> int: ...

    # What prune asks.
    async def has_retention(self) -> bool: ...
    async def last_task(self) -> int: ...
    async def lock_prunable(
        self, queue: str | None, older_ms: int | None, wall_ms: int, after: int, upto: int, limit: int
    ) -> list[TaskRow]: ...
    async def lock_effects_of(self, task_seq: int) -> list[EffectRow]: ...
    async def find_tombstone(self, task_id: str) -> int | None: ...
    async def is_unrecorded(self, token: int, task_id: str) -> bool:
        """Is there no lease of the token and no tombstone of the task, whichever tenant's."""

    # Facts that need no lock.
    def secret(self, token: int, task_id: str) -> str: ...
    def is_ours(self, lock: str) -> bool:
        """Does the process that asks hold this lock, or has it inherited it."""

    def refused(
        self,
        lease: LeaseRow,
        task_id: str,
        reason: LostReason,
        current: int,
        late_ms: int | None,
        kept: str | None,
    ) -> None: ...

    # Reads, for rules that never write and for what cannot change.
    async def find_task(self, task_id: str) -> Task | None: ...
    async def find_tasks(self, which: TaskFilter, after: str | None, limit: int) -> list[Task] | None: ...
    async def find_input(self, task_seq: int) -> str: ...
    async def find_lease(self, token: int) -> LeaseRow | None: ...
    async def lock_task_of(self, task_seq: int) -> TaskRow: ...
    async def find_checkpoint(self, task_seq: int, name: str) -> str | None: ...
    async def find_waiting(self, queue: str, kinds: Sequence[str] | None) -> Waiting: ...
    async def find_stirred(self, queues: Sequence[str]) -> list[str]:
        """Those of the queues in which a task is ready or delayed."""

    async def find_next_lapse(self) -> int | None:
        """The store time at which the first open lease expires, or is to be looked at; None when nothing is held."""

    async def find_holders(self) -> list[HolderRow]: ...
    async def find_queue(self, name: str) -> QueueRow | None: ...

    async def lock_limits(self, queue: str) -> QueueRow | None:
        """A queue of which a locked task is about to be taken: what its limits count stands still from here on."""

    async def find_events(self, task_id: str | None, queue: str | None, after: int, limit: int) -> list[Event]: ...
    async def last_event(self) -> int: ...
    async def find_rejections(self, task_id: str | None, before: int | None, limit: int) -> list[Rejection]: ...


__all__ = [
    "Ahead", "Handle", "Held", "HolderRow", "Holding", "LeaseRow", "QueueRow", "TaskFilter", "TaskRow", "Tx",
    "Waiting",
]  # fmt: skip
