"""The transaction port over row locks: where one statement is not enough to do what one write lock does at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from psycopg import errors as pg

from relet.core import limits
from relet.core.model import Event, Instants
from relet.core.rules.set_queue import KNOBS, LIMITS
from relet.core.tx import Ahead, LeaseRow, QueueRow, TaskRow
from relet.core.work import Effect
from relet.core.work_tx import EffectRow
from relet.store.postgres.runner import NotAtOnce, PostgresRunner
from relet.store.rows import Row, lease_of
from relet.store.sql import SqlTx

LATEST: Final = 1_000
"""Among so many of the last numbers one is looked for that is missing, before somebody begins to read after them."""
STILL_COMING_MS: Final = 10_000
"""For how long a number that is missing among the events may still belong to an open transaction."""

KEPT_S: Final = 60
"""Rows that are of use for a moment: far longer than any transaction that asks for them."""
PAUSE_S, PAUSES_MAX = 0.01, 100
"""How often it is looked whether others have ended, and how often at most before the transaction begins anew."""
KEYS_EVERY_S: Final = 16
"""Only sweeps in one second of so many look through all keys."""


class PostgresTx(SqlTx):
    """As the rules ask it. The task's row is the lock of all that belongs to a task."""

    run: PostgresRunner

    def __init__(self, run: PostgresRunner, tenant: str) -> None:
        super().__init__(run, tenant)
        self._owners: dict[str, str] = {}
        """Whose an effect was when it was looked at without a lock."""
        self._knobs: dict[str, list[Any]] = {}
        """Those of a queue when they were looked at without a lock."""
        self._held_requests: set[str] = set()
        self._tombstones: list[Callable[[], list[Row]]] = []
        """Questions for those of ids that were inserted; answered by now, or soon."""

    async def find_lease(self, token: int) -> LeaseRow | None:
        if not self.run.writes:
            return await super().find_lease(token)
        # A renewal locks the lease alone: without the lock it could come between this look and what is made of it.
        row = await self.run.one("lock_lease_of", {"token": token})
        return None if row is None or row[2] != self.tenant else lease_of(row)

    async def look_ahead(self, queue: str) -> Ahead:
        # A result that was handed in under a live lease is not lost by waiting for what comes next.
        self.run.span.stand()
        ahead = await super().look_ahead(queue)
        if ahead.queue is not None and ahead.queue.is_bounded:
            # What a limit counts must not move under the count: one claim of such a queue at a time.
            await self._lock_queue(queue)
            ahead = await super().look_ahead(queue)
            # It is for the first task of all, and will be given for the one whose turn it is.
            self.run.forget_tokens()
        return ahead

    async def _lock_queue(self, name: str) -> None:
        await self.run.one("lock_queue", {"tenant": self.tenant, "queue": name})

    async def find_queue(self, name: str) -> QueueRow | None:
        queue = await super().find_queue(name)
        self._knobs[name] = _knobs_of(queue)
        return queue

    async def lock_limits(self, queue: str) -> QueueRow | None:
        found = await super().lock_limits(queue)
        if found is not None and (found.is_counted or found.rate):
            # One claim at a time, as in a look ahead.
            await self._lock_queue(queue)
            found = await super().lock_limits(queue)
        return found

    async def put_queue(self, row: QueueRow) -> None:
        knobs = self._knobs[row.name]
        if row.is_counted and not _is_counted(knobs):
            # Before the row: who takes tasks may wait for that.
            await self.run.do("wait_for_takers", {})
        await self.run.do("make_queue", {"tenant": self.tenant, "queue": row.name})
        await self._lock_queue(row.name)
        if _knobs_of(await super().find_queue(row.name)) != knobs:
            raise NotAtOnce  # somebody else has set it between the look and the lock
        await super().put_queue(row)

    async def lock_requested(self, request_id: str) -> tuple[list[LeaseRow], Instants]:
        await self._hold_request(request_id)
        return await super().lock_requested(request_id)

    async def lock_called(self, call_id: str) -> tuple[list[LeaseRow], Instants]:
        await self._hold_request(call_id)
        return await super().lock_called(call_id)

    async def _hold_request(self, name: str) -> None:
        """One transaction at a time; it comes before any lock of a task."""
        if name not in self._held_requests:
            self._held_requests.add(name)
            second = (await self.run.instants()).now_ms // limits.SECOND_MS
            await self.run.do("hold_request", {"tenant": self.tenant, "id": name, "second": second})

    async def wait_for_takers(self) -> None:
        """Until every transaction that may be taking tasks now has ended; those that begin meanwhile may go on."""
        open_ones = set(await self.run.all("find_takers", {}))
        for _ in range(PAUSES_MAX):
            if not open_ones:
                return
            await self.run.do("pause", {"seconds": PAUSE_S})
            open_ones &= set(await self.run.all("find_takers", {}))
        raise pg.LockNotAvailable("the first try of this call, or another transaction, does not end")

    async def insert_task(self, row: TaskRow, payload: str) -> int | None:
        seq = await super().insert_task(row, payload)
        self.look_for_tombstones([row.id])
        return seq

    def look_for_tombstones(self, ids: list[str]) -> None:
        """Of what was just inserted: it may have waited for a prune of the same id, which ended after it looked."""
        asked = {"tenant": self.tenant, "ids": msgspec.json.encode(ids).decode()}
        self._tombstones.append(self.run.later("find_tombstones", asked))

    @property
    def loose(self) -> bool:
        return super().loose or bool(self._tombstones)

    async def settle(self) -> None:
        await super().settle()
        if any(answered() for answered in self._tombstones):
            raise NotAtOnce

    async def lock_exclusive(self, key: str) -> LeaseRow | None:
        named = {"tenant": self.tenant, "key": key}
        await self.run.do("make_key", named)
        is_ours = await self.run.one("lock_key", named) is not None
        row = await self.run.one("lock_exclusive", named)
        if is_ours:
            # Others may have held it since, under tokens that are larger than those reserved with the task.
            self.run.draw_anew()
        if row is not None and is_ours and await self._can_end(row[0]):
            held = await self.find_lease(row[0])
            if held is not None and held.ended is None:
                return held
            row = await self.run.one("lock_exclusive", named)  # somebody else ended it after the first look
        if row is None and is_ours:
            return None
        # Somebody is just taking or ending it: busy, until the next claim looks.
        at = await self.run.instants()
        found = lease_of(row) if row is not None else _someones(at.now_ms)
        found.expires_ms = max(found.expires_ms, at.now_ms + 1)
        return found

    async def clear_places(self, queue: str | None, share: str | None) -> None:
        await super().clear_places(queue, share)
        if queue is None:
            await self._forget()

    async def _forget(self) -> None:
        """What a sweep clears beside places: this engine adds rows where the embedded one counts in place."""
        second = (await self.run.instants()).now_ms // limits.SECOND_MS
        await self.run.do("forget_lapses", {"second": second - KEPT_S})
        await self.run.do("forget_requests", {"second": second - KEPT_S})
        if second % KEYS_EVERY_S == 0:
            await self.run.do("forget_keys", {})

    async def _can_end(self, token: int) -> bool:
        params = {"tokens": msgspec.json.encode([token]).decode(), "tenant": self.tenant}
        return bool(await self.run.all("lock_free_leases", params))

    async def open_shares(self, queue: str) -> None:
        known = await super().find_queue(queue)
        if known is None or known.shared_from is None:
            await self.run.do("lock_all_tasks", {})
            await super().open_shares(queue)

    async def find_effect(self, effect_id: str) -> Effect | None:
        found = await super().find_effect(effect_id)
        if found is not None:
            self._owners[effect_id] = found.task_id
        return found

    async def lock_effect(self, effect_id: str) -> EffectRow | None:
        effect = await super().lock_effect(effect_id)
        owner = self._owners.get(effect_id)
        if effect is not None and owner is not None and await self.find_seq(owner) != effect.task_seq:
            raise NotAtOnce  # it passed to another task between the look and the lock
        return effect

    async def lock_prunable(
        self, queue: str | None, older_ms: int | None, wall_ms: int, after: int, upto: int, limit: int
    ) -> list[TaskRow]:
        tasks = await super().lock_prunable(queue, older_ms, wall_ms, after, upto, limit)
        newest = await self.run.one("newest_event", {}) if tasks else None
        for task in tasks:
            # Histories are no chains here; of one alone it is asked where it ends.
            if newest is not None and task.seq == newest[1]:
                task.last_event = newest[0]
        return tasks

    async def find_events(self, task_id: str | None, queue: str | None, after: int, limit: int) -> list[Event]:
        events = await super().find_events(task_id, queue, after, limit)
        if task_id is not None or not events:
            return events
        upto = events[-1].seq
        gap = await self._gap(after, upto)
        if gap is None:
            return events
        # Numbers are drawn before they are committed: what is missing may still come, and must not be read past.
        if await self._are_coming():
            return [event for event in events if event.seq < gap[0]]
        again = await super().find_events(task_id, queue, after, limit)
        return [event for event in again if event.seq <= upto]

    async def last_event(self) -> int:
        last = await super().last_event()
        gap = await self._gap(max(0, last - LATEST), last)
        return gap[1] if gap is not None and await self._are_coming() else last

    async def _gap(self, after: int, upto: int) -> Row | None:
        at = await self.run.instants()
        asked = {"after": after, "upto": upto, "now_ms": at.now_ms, "patience_ms": STILL_COMING_MS}
        return await self.run.one("find_gap", asked)

    async def _are_coming(self) -> bool:
        row = await self.run.one("are_events_coming", {})
        return row is None or bool(row[0])


def _someones(now_ms: int) -> LeaseRow:
    """In place of a lease that is being made, and cannot be seen yet."""
    return LeaseRow(
        0, 0, "", "", 1, 1, None, None, 1, 1, 0, 0, None, now_ms, now_ms, now_ms, now_ms, now_ms + 1, now_ms + 1
    )


def _knobs_of(queue: QueueRow | None) -> list[Any]:
    """What set_queue writes, of which claims write nothing."""
    return [getattr(queue, name, None) or None for name in (*KNOBS, *LIMITS)]


def _is_counted(knobs: list[Any]) -> bool:
    set_to = dict(zip((*KNOBS, *LIMITS), knobs, strict=True))
    return set_to["concurrency"] is not None or set_to["share_concurrency"] is not None
