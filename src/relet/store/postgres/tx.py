"""The transaction port over row locks: where one statement is not enough to do what one write lock does at once."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core import limits
from relet.core.model import Event
from relet.core.tx import Ahead, LeaseRow, TaskRow
from relet.core.work import Effect
from relet.core.work_tx import EffectRow
from relet.store.postgres.runner import NotAtOnce, PostgresRunner
from relet.store.rows import Row, lease_of
from relet.store.sql import SqlTx

LATEST: Final = 1_000
"""Among so many of the last numbers one is looked for that is missing, before somebody begins to read after them."""
STILL_COMING_MS: Final = 10_000
"""For how long a number that is missing among the events may still belong to an open transaction."""

LAPSES_KEPT_S: Final = 60
"""Far longer than the second that they are counted in, and than any transaction that counts them."""
KEYS_EVERY_S: Final = 16
"""Only sweeps in one second of so many look through all keys."""


class PostgresTx(SqlTx):
    """As the rules ask it. The task's row is the lock of all that belongs to a task."""

    run: PostgresRunner

    def __init__(self, run: PostgresRunner, tenant: str) -> None:
        super().__init__(run, tenant)
        self._owners: dict[str, str] = {}
        """Whose an effect was when it was looked at without a lock."""

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
            await self.run.one("lock_queue", {"tenant": self.tenant, "queue": queue})
            ahead = await super().look_ahead(queue)
        return ahead

    async def lock_exclusive(self, key: str) -> LeaseRow | None:
        named = {"tenant": self.tenant, "key": key}
        await self.run.do("make_key", named)
        is_ours = await self.run.one("lock_key", named) is not None
        row = await self.run.one("lock_exclusive", named)
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
        await self.run.do("forget_lapses", {"second": second - LAPSES_KEPT_S})
        if second % KEYS_EVERY_S == 0:
            await self.run.do("forget_keys", {})

    async def _can_end(self, token: int) -> bool:
        params = {"tokens": msgspec.json.encode([token]).decode(), "tenant": self.tenant}
        return bool(await self.run.all("lock_free_leases", params))

    async def open_shares(self, queue: str) -> None:
        known = await self.find_queue(queue)
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
