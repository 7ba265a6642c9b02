"""The transaction port of fair turns and limits for every SQL engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from relet.core.model import Instants
from relet.core.turns_tx import LeasedOf
from relet.core.tx import QueueRow, TaskRow
from relet.store.rows import Row, task_of
from relet.store.runner import Params, Runner

TURN_STATEMENTS: Final = frozenset([
    "open_shares", "lock_turns", "lock_before_shares", "note_turn", "take_place", "clear_places", "clear_all_places",
    "count_places", "count_live_places", "fill_places", "drop_places", "find_queues", "count_leased_of",
])  # fmt: skip


class SqlTurns:
    """As the rules of turns ask it."""

    run: Runner
    tenant: str
    inputs: dict[int, str]
    """Inputs that were read along with their tasks; they never change."""

    def with_input(self, row: Row) -> TaskRow:
        """The task of a row whose first column is its input."""
        task = task_of(row[1:])
        self.inputs[task.seq] = row[0]
        return task

    async def open_shares(self, queue: str) -> None:
        await self.run.do("open_shares", {"tenant": self.tenant, "queue": queue})

    async def lock_turns(
        self, queue: str, kinds: Sequence[str] | None, after: str, most: int | None, limit: int
    ) -> tuple[list[TaskRow], Instants]:
        at = await self.run.instants()
        params = self._ready(queue, kinds, at) | {"after": after, "most": most, "limit": limit}
        rows = await self.run.all("lock_turns", params)
        return [self.with_input(row) for row in rows], await self.run.instants()

    async def lock_before_shares(
        self, queue: str, kinds: Sequence[str] | None, shared_from: int
    ) -> TaskRow | None:  # fmt: skip
        params = self._ready(queue, kinds, await self.run.instants())
        row = await self.run.one("lock_before_shares", params | {"shared_from": shared_from})
        return None if row is None else self.with_input(row)

    def _ready(self, queue: str, kinds: Sequence[str] | None, at: Instants) -> Params:
        return {
            "tenant": self.tenant, "queue": queue, "now_ms": at.now_ms, "wall_ms": at.wall_ms,
            "kinds": None if kinds is None else msgspec.json.encode(kinds).decode(),
        }  # fmt: skip

    async def note_turn(self, row: QueueRow) -> None:
        state = {"last_share": row.last_share, "full_us": row.full_us}
        await self.run.do("note_turn", {"tenant": self.tenant, "queue": row.name, **state})

    async def take_place(self, queue: str, share: str, token: int) -> None:
        await self.run.do("take_place", {"tenant": self.tenant, "queue": queue, "share": share, "token": token})

    async def count_places(self, queue: str, share: str | None) -> int:
        row = await self.run.one("count_places", {"tenant": self.tenant, "queue": queue, "share": share})
        assert row is not None, "an aggregate answers one row"
        return int(row[0])

    async def clear_places(self, queue: str | None, share: str | None) -> None:
        if queue is None:
            await self.run.do("clear_all_places", {})
        else:
            await self.run.do("clear_places", {"tenant": self.tenant, "queue": queue, "share": share})

    async def fill_places(self, queue: str) -> None:
        await self.run.do("fill_places", {"tenant": self.tenant, "queue": queue})

    async def drop_places(self, queue: str) -> None:
        await self.run.do("drop_places", {"tenant": self.tenant, "queue": queue})

    async def find_queues(self, after: str, limit: int) -> list[str]:
        rows = await self.run.all("find_queues", {"tenant": self.tenant, "after": after, "limit": limit})
        return [row[0] for row in rows]

    async def count_live_places(self, queue: str, share: str | None) -> int:
        at = await self.run.instants()
        params = {"tenant": self.tenant, "queue": queue, "share": share, "now_ms": at.now_ms}
        row = await self.run.one("count_live_places", params)
        assert row is not None, "an aggregate answers one row"
        return int(row[0])

    async def count_leased_of(self, queue: str) -> LeasedOf:
        at = await self.run.instants()
        row = await self.run.one("count_leased_of", {"tenant": self.tenant, "queue": queue, "now_ms": at.now_ms})
        assert row is not None, "an aggregate answers one row"
        return LeasedOf(*row)
