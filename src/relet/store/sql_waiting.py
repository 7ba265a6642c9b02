"""What waits, and when the next thing happens by itself: questions of workers that have nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from relet.core.tx import Waiting
from relet.store.runner import Params, Runner

WAITING_STATEMENTS: Final = frozenset(["find_waiting", "find_stirred", "find_next_lapse"])


class SqlWaiting:
    """The part of the transaction port that looks ahead without a lock."""

    run: Runner
    tenant: str

    async def find_waiting(self, queue: str, kinds: Sequence[str] | None) -> Waiting:
        at = await self.run.instants()
        params: Params = {"tenant": self.tenant, "queue": queue, "now_ms": at.now_ms, "wall_ms": at.wall_ms}
        params["kinds"] = None if kinds is None else msgspec.json.encode(kinds).decode()
        row = await self.run.one("find_waiting", params)
        assert row is not None, "one row, whatever there is"
        return Waiting(bool(row[0]), row[1], row[2], bool(row[3]))

    async def find_stirred(self, queues: Sequence[str]) -> list[str]:
        params = {"tenant": self.tenant, "queues": msgspec.json.encode(queues).decode()}
        return [row[0] for row in await self.run.all("find_stirred", params)]

    async def find_next_lapse(self) -> int | None:
        row = await self.run.one("find_next_lapse", {"now_ms": (await self.run.instants()).now_ms})
        return None if row is None else row[0]
