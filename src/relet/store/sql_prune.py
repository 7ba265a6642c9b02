"""The part of the port that removes tasks: every row of one, and a tombstone in their place."""

from __future__ import annotations

from typing import Final

from relet.core.model import Instants
from relet.core.tx import TaskRow
from relet.core.work_tx import EffectRow
from relet.store.rows import task_of
from relet.store.runner import Runner
from relet.store.work_rows import effect_of

# Whatever refers to another row goes before it.
_OF_A_TASK: Final = (
    "prune_leases", "prune_input", "prune_checkpoints", "prune_steps", "prune_waits", "prune_signals",
    "prune_artifacts", "prune_evidence", "prune_effects", "prune_rejections",
)  # fmt: skip
PRUNE_STATEMENTS: Final = frozenset([
    *_OF_A_TASK, "prune_events", "prune_task", "has_retention", "last_task", "lock_prunable", "lock_effects_of",
    "find_tombstone", "is_unrecorded", "put_tombstone", "count_pruned",
])  # fmt: skip


class SqlPrune:
    """Tasks that leave."""

    run: Runner
    tenant: str

    async def has_retention(self) -> bool:
        row = await self.run.one("has_retention", {"tenant": self.tenant})
        return row is not None and bool(row[0])

    async def last_task(self) -> int:
        row = await self.run.one("last_task", {})
        return 0 if row is None else int(row[0])

    async def lock_prunable(
        self, queue: str | None, older_ms: int | None, wall_ms: int, after: int, upto: int, limit: int
    ) -> list[TaskRow]:
        params = {
            "tenant": self.tenant, "queue": queue, "older_ms": older_ms, "wall_ms": wall_ms, "after": after,
            "upto": upto, "limit": limit,
        }  # fmt: skip
        return [task_of(row) for row in await self.run.all("lock_prunable", params)]

    async def lock_effects_of(self, task_seq: int) -> list[EffectRow]:
        return [effect_of(row) for row in await self.run.all("lock_effects_of", {"task_seq": task_seq})]

    async def find_tombstone(self, task_id: str) -> int | None:
        row = await self.run.one("find_tombstone", {"tenant": self.tenant, "id": task_id})
        return None if row is None else int(row[0])

    async def is_unrecorded(self, token: int, task_id: str) -> bool:
        row = await self.run.one("is_unrecorded", {"token": token, "id": task_id})
        return row is not None and bool(row[0])

    async def remove_task(self, task: TaskRow, result_digest: str | None, at: Instants) -> int:
        params = {
            "tenant": task.tenant, "id": task.id, "queue": task.queue, "state": str(task.state), "token": task.token,
            "result_digest": result_digest, "wall_ms": at.wall_ms, "last_event": task.last_event,
            "task_seq": task.seq,
        }  # fmt: skip
        await self.run.do("put_tombstone", params)
        await self.run.do("count_pruned", params)
        for name in _OF_A_TASK:
            await self.run.do(name, params)
        events = await self.run.all("prune_events", params)
        await self.run.do("prune_task", params)
        return len(events)
