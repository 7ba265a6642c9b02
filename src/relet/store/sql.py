"""One transaction port for every SQL engine: a named statement in, nouns out.

The engine lends a `Runner` that knows its driver and its clock; nothing here knows either.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Final

import msgspec

from relet.core import limits
from relet.core.model import Cause, End, Event, Instants, LostReason, State, Task
from relet.core.tx import Ahead, Held, Holding, LeaseRow, QueueRow, TaskFilter, TaskRow
from relet.store.rows import event_of, lease_of, queue_of, rejection_of, task_of, view_of
from relet.store.runner import Params, Refusal, Runner
from relet.store.sql_bonds import SqlBonds
from relet.store.sql_figures import SqlFigures
from relet.store.sql_keys import SqlKeys
from relet.store.sql_prune import SqlPrune
from relet.store.sql_turns import SqlTurns
from relet.store.sql_waiting import SqlWaiting
from relet.store.sql_work import SqlWork
from relet.store.unreadable import WHOLE_MAX, gone

STATEMENTS: Final = frozenset(
    [
        "read_meta",
        "insert_meta",
        "read_min_reader",
        "read_identity",
        "count_tables",
        "set_tokens",
        "count_lapses",
        "lock_task",
        "task_by_seq",
        "lease_by_token",
        "lock_lease",
        "lock_holdings",
        "look_endings",
        "lock_leases",
        "lock_ready",
        "lock_ready_of",
        "look_ahead",
        "lock_due",
        "lock_due_wall",
        "lock_overdue",
        "lock_to_check",
        "lock_exclusive",
        "lock_requested",
        "lock_called",
        "lock_matching",
        "insert_task",
        "insert_input",
        "update_task",
        "take_task",
        "complete_task",
        "link_event",
        "insert_lease",
        "extend_lease",
        "note_late_beat",
        "extend_leases",
        "look_run",
        "extend_run",
        "postpone_check",
        "end_lease",
        "mark_cancelling",
        "put_checkpoint",
        "trim_checkpoints",
        "put_queue",
        "add_event",
        "count_submitted",
        "count_takeover",
        "find_task",
        "find_tasks",
        "count_ready_few",
        "find_tasks_ready",
        "find_tasks_leased",
        "find_tasks_set_aside",
        "find_input",
        "find_checkpoint",
        "find_queue",
        "find_task_events",
        "find_events",
        "last_event",
        "last_reading",
        "extend_all_open",
        "rebase_clock",
        "insert_rejection",
        "forget_result",
        "trim_rejections",
        "count_rejection",
        "find_rejections",
    ]
)
LISTED: Final = {
    "look_ahead": ("tenant", "queue", "now_ms", "wall_ms"),
    "lock_lease": ("token", "tenant"),
    "add_event": (
        "seq", "task_seq", "before", "kind", "state", "token", "holder", "at_ms", "wall_ms", "detail",
    ),
    "end_lease": ("ended", "ended_ms", "ended_wall_ms", "end_digest", "end_answer", "token"),
    "take_task": ("state", "token", "updated_wall_ms", "last_event", "seq"),
    "complete_task": ("state", "error", "code", "reason", "result", "updated_wall_ms", "last_event", "seq"),
}  # fmt: skip
"""The parameters of the hottest statements, in the order in which their values are handed on."""
LEASE_COLUMNS: Final = len(LeaseRow.__struct_fields__)
FIRST_TASK: Final = 3 + len(QueueRow.__struct_fields__)
"""Where the columns of the first task begin, after those of the queue."""
_ENCODER = msgspec.json.Encoder()
SET_ASIDE: Final = (State.WAITING, State.FAILED, State.CANCELLED)


class SqlReads(SqlWork, SqlFigures, SqlWaiting, SqlKeys):
    """The questions that rules may ask without a lock."""

    run: Runner
    inputs: dict[int, str]

    async def find_task(self, task_id: str) -> Task | None:
        row = await self.run.one("find_task", {"tenant": self.tenant, "id": task_id})
        return None if row is None else view_of(row, await self.run.instants())

    async def find_tasks(self, which: TaskFilter, after: str | None, limit: int) -> list[Task] | None:
        start = 0
        if after is not None:
            row = await self.run.one("lock_task", {"tenant": self.tenant, "id": after})
            if row is None:
                return None
            start = row[0]
        name = "find_tasks"
        if which.state is State.LEASED:
            name = "find_tasks_leased"
        elif which.state in SET_ASIDE:
            name = "find_tasks_set_aside"
        elif which.state is State.READY and await self._are_few_ready():
            name = "find_tasks_ready"
        rows = await self.run.all(name, self._matching(which, start, limit))
        at = await self.run.instants()
        return [view_of(row, at) for row in rows]

    async def _are_few_ready(self) -> bool:
        """Few enough to be sorted for a page; where there are many, the next ones are near in the order of all."""
        row = await self.run.one("count_ready_few", {"tenant": self.tenant, "limit": limits.READY_SORTED + 1})
        assert row is not None, "a count is one row"
        return int(row[0]) <= limits.READY_SORTED

    async def find_input(self, task_seq: int) -> str:
        if task_seq in self.inputs:
            return self.inputs[task_seq]
        row = await self.run.one("find_input", {"seq": task_seq})
        if row is None:
            raise gone("input of task", task_seq)
        return str(row[0])

    async def find_lease(self, token: int) -> LeaseRow | None:
        row = await self.run.one("lease_by_token", {"token": token})
        return None if row is None or row[2] != self.tenant else lease_of(row)

    async def lock_task_of(self, task_seq: int) -> TaskRow:
        row = await self.run.one("task_by_seq", {"seq": task_seq})
        if row is None:
            raise gone("task", task_seq)
        return task_of(row)

    async def find_checkpoint(self, task_seq: int, name: str) -> str | None:
        row = await self.run.one("find_checkpoint", {"task_seq": task_seq, "name": name})
        return None if row is None else row[0]

    async def find_queue(self, name: str) -> QueueRow | None:
        row = await self.run.one("find_queue", {"tenant": self.tenant, "name": name})
        return None if row is None else queue_of(row)

    async def lock_limits(self, queue: str) -> QueueRow | None:
        return await self.find_queue(queue)

    async def find_events(self, task_id: str | None, queue: str | None, after: int, limit: int) -> list[Event]:
        params: Params = {"tenant": self.tenant, "after": after, "limit": limit}
        if task_id is not None:
            rows = await self.run.all("find_task_events", {**params, "id": task_id})
        else:
            rows = await self.run.all("find_events", {**params, "queue": queue})
        return [event_of(row) for row in rows]

    async def last_event(self) -> int:
        row = await self.run.one("last_event", {})
        return 0 if row is None else int(row[0])

    async def find_rejections(self, task_id: str | None, before: int | None, limit: int) -> list[Any]:
        params = {"tenant": self.tenant, "task_id": task_id, "before": before, "limit": limit}
        return [rejection_of(row) for row in await self.run.all("find_rejections", params)]

    def _matching(self, which: TaskFilter, after: int, limit: int) -> Params:
        return {
            "tenant": self.tenant, "queue": which.queue, "kind": which.kind, "after": after, "limit": limit,
            "state": None if which.state is None else str(which.state),
            "labels": msgspec.json.encode(which.labels).decode() if which.labels else None,
        }  # fmt: skip


class SqlTx(SqlReads, SqlPrune, SqlTurns, SqlBonds):
    """The locks and writes of rules, over one open transaction."""

    def __init__(self, run: Runner, tenant: str) -> None:
        self.run = run
        self.tenant = tenant
        self.inputs = {}
        self.refusals: list[Refusal] = []
        self._ends: dict[int, int] = {}
        """The newest event of each task that got one here."""
        self._loose: set[int] = set()
        """Tasks that were not written since."""

    @property
    def loose(self) -> bool:
        """Is anything left to be written before the commit."""
        return bool(self._loose or self.run.held_back)

    async def settle(self) -> None:
        """Write what is left once the rule has ended: what was held back, and newest events of tasks before them."""
        if self._loose:
            loose = [{"seq": seq, "last_event": self._ends[seq]} for seq in sorted(self._loose)]
            await self.run.do_many("link_event", loose)
        self.run.send()

    def instants(self) -> Coroutine[Any, Any, Instants]:
        return self.run.instants()

    async def lock_task(self, task_id: str) -> Held | None:
        row = await self.run.one("lock_task", {"tenant": self.tenant, "id": task_id})
        return None if row is None else Held(task_of(row), await self.run.instants())

    async def lock_lease(self, token: int) -> Holding | None:
        row = await self.run.one_listed("lock_lease", (token, self.tenant))
        if row is None:
            return None
        at = await self.run.instants()
        return tuple.__new__(Holding, (lease_of(row[:LEASE_COLUMNS]), task_of(row[LEASE_COLUMNS:]), at))

    async def lock_holdings(self, tokens: Sequence[int]) -> dict[int, Holding]:
        params = {"tokens": msgspec.json.encode(tokens).decode(), "tenant": self.tenant}
        rows = await self.run.all("lock_holdings", params)
        at = await self.run.instants()
        return {row[0]: Holding(lease_of(row[:LEASE_COLUMNS]), task_of(row[LEASE_COLUMNS:]), at) for row in rows}

    async def lock_leases(self, tokens: Sequence[int]) -> tuple[dict[int, LeaseRow], Instants]:
        params = {"tokens": msgspec.json.encode(tokens).decode(), "tenant": self.tenant}
        leases = {row[0]: lease_of(row) for row in await self.run.all("lock_leases", params)}
        return leases, await self.run.instants()

    async def lock_ready(
        self, queue: str, kinds: Sequence[str] | None, after: tuple[int, int] | None, limit: int
    ) -> tuple[list[TaskRow], Instants]:
        at = await self.run.instants()
        params: Params = {"tenant": self.tenant, "queue": queue, "limit": limit}
        params["now_ms"], params["wall_ms"] = at
        if kinds is None and after is None:
            rows = await self.run.all("lock_ready", params)
        else:
            priority, seq = after or (limits.PRIORITY_MAX + 1, 0)
            params |= {"priority": priority, "seq": seq}
            params["kinds"] = None if kinds is None else msgspec.json.encode(kinds).decode()
            rows = await self.run.all("lock_ready_of", params)
        return [self.with_input(row) for row in rows], await self.run.instants()

    async def look_ahead(self, queue: str) -> Ahead:
        at = await self.run.instants()
        row = await self.run.one_listed("look_ahead", (self.tenant, queue, *at))
        assert row is not None, "one row, whatever there is"
        queue_row = None if row[3] is None else queue_of(row[3:FIRST_TASK])
        first = None if row[FIRST_TASK] is None else self.with_input(row[FIRST_TASK:])
        return Ahead(bool(row[0]), bool(row[1]), bool(row[2]), queue_row, first, await self.run.instants())

    async def lock_due(self, queue: str, limit: int) -> tuple[list[TaskRow], Instants]:
        at = await self.run.instants()
        params: Params = {"tenant": self.tenant, "queue": queue, "limit": limit}
        rows = await self.run.all("lock_due", {**params, "now_ms": at.now_ms})
        rows += await self.run.all("lock_due_wall", {**params, "wall_ms": at.wall_ms})
        return [task_of(row) for row in rows], await self.run.instants()

    async def lock_overdue(self, limit: int) -> tuple[list[TaskRow], Instants]:
        at = await self.run.instants()
        rows = await self.run.all("lock_overdue", {"wall_ms": at.wall_ms, "limit": limit})
        return [task_of(row) for row in rows], await self.run.instants()

    async def lock_to_check(self, limit: int) -> tuple[list[LeaseRow], Instants]:
        at = await self.run.instants()
        rows = await self.run.all("lock_to_check", {"now_ms": at.now_ms, "limit": limit})
        return [lease_of(row) for row in rows], await self.run.instants()

    async def lock_exclusive(self, key: str) -> LeaseRow | None:
        row = await self.run.one("lock_exclusive", {"tenant": self.tenant, "key": key})
        return None if row is None else lease_of(row)

    async def lock_requested(self, request_id: str) -> tuple[list[LeaseRow], Instants]:
        rows = await self.run.all("lock_requested", {"request_id": request_id, "tenant": self.tenant})
        return [lease_of(row) for row in rows], await self.run.instants()

    async def lock_called(self, call_id: str) -> tuple[list[LeaseRow], Instants]:
        rows = await self.run.all("lock_called", {"call_id": call_id, "tenant": self.tenant})
        return [lease_of(row) for row in rows], await self.run.instants()

    async def lock_matching(self, which: TaskFilter, after: int, limit: int) -> list[TaskRow]:
        rows = await self.run.all("lock_matching", self._matching(which, after, limit))
        return [task_of(row) for row in rows]

    async def insert_task(self, row: TaskRow, payload: str) -> int | None:
        made = await self.run.one("insert_task", msgspec.structs.asdict(row))
        if made is None:
            return None  # there is a tombstone
        await self.run.do("insert_input", {"seq": made[0], "input": payload})
        await self.run.do("count_submitted", {"tenant": row.tenant, "queue": row.queue})
        return int(made[0])

    def update_task(self, row: TaskRow) -> Coroutine[Any, Any, None]:
        self._link(row)
        return self.run.do_row("update_task", row)

    def take_task(self, row: TaskRow) -> Coroutine[Any, Any, None]:
        self._link(row)
        return self.run.do_row("take_task", row)

    def complete_task(self, row: TaskRow) -> Coroutine[Any, Any, None]:
        self._link(row)
        return self.run.do_row("complete_task", row)

    def _link(self, row: TaskRow) -> None:
        if row.seq in self._ends:
            row.last_event = self._ends[row.seq]
            self._loose.discard(row.seq)

    async def insert_lease(self, row: LeaseRow) -> None:
        await self.run.do_row("insert_lease", row)
        if row.took_over is not None:
            await self.run.do("count_takeover", {"task_seq": row.task_seq})

    async def extend_leases(self, beats: Sequence[LeaseRow]) -> None:
        await self.run.do_many("extend_lease", [
            {"expires_ms": b.expires_ms, "beat_ms": b.beat_ms, "beat_wall_ms": b.beat_wall_ms, "token": b.token}
            for b in beats
        ])  # fmt: skip

    async def note_late_beats(self, left_ms: dict[int, int]) -> None:
        await self.run.do_many("note_late_beat", [{"token": token, "left_ms": ms} for token, ms in left_ms.items()])

    async def postpone_checks(self, leases: Sequence[LeaseRow]) -> None:
        await self.run.do_many(
            "postpone_check", [{"check_ms": lease.check_ms, "token": lease.token} for lease in leases]
        )

    def end_lease(self, row: LeaseRow) -> Coroutine[Any, Any, None]:
        if row.ended is End.LAPSED:
            self.run.saw_lapse()
        return self.run.do_row("end_lease", row)

    async def mark_cancelling(self, token: int) -> None:
        await self.run.do("mark_cancelling", {"token": token})

    async def put_checkpoint(self, task_seq: int, name: str, token: int, wall_ms: int, value: str) -> int:
        params = {"task_seq": task_seq, "name": name, "token": token, "wall_ms": wall_ms, "value": value}
        made = await self.run.one("put_checkpoint", params)
        assert made is not None, "RETURNING answers the row"
        version = int(made[0])
        if version > limits.CHECKPOINTS_KEPT:
            await self.run.do("trim_checkpoints", {**params, "version": version, "kept": limits.CHECKPOINTS_KEPT})
        return version

    async def put_queue(self, row: QueueRow) -> None:
        await self.run.do_row("put_queue", row)

    async def add_event(
        self, task: TaskRow, cause: Cause, at: Instants, token: int | None, holder: str | None, **detail: Any
    ) -> None:
        if None in detail.values():
            detail = {key: value for key, value in detail.items() if value is not None}
        before, seq = self._ends.get(task.seq, task.last_event), self.run.next_event()
        if seq:
            self._ends[task.seq] = seq
            self._loose.add(task.seq)
        told = _ENCODER.encode(detail).decode() if detail else "{}"
        await self.run.do_listed("add_event", (seq, task.seq, before, cause, task.state, token, holder, *at, told))

    def next_token(self) -> Coroutine[Any, Any, int]:
        return self.run.next_token()

    async def count_lapses(self, at: Instants, n: int) -> int:
        row = await self.run.one("count_lapses", {"second": at.now_ms // limits.SECOND_MS, "n": n})
        assert row is not None, "RETURNING answers the single row"
        return int(row[0])

    def secret(self, token: int, task_id: str) -> str:
        return self.run.secret(token, task_id)

    def refused(
        self, lease: LeaseRow, task_id: str, reason: LostReason, current: int, late_ms: int | None, kept: str | None
    ) -> None:  # fmt: skip
        # By an expiry that no clock has shown nobody is late by so much; as any that has passed, it is closed.
        late = late_ms if (late_ms or 0) <= WHOLE_MAX else None
        self.refusals.append(Refusal(lease, task_id, reason, current, late, kept))
