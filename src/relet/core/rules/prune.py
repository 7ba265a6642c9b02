"""prune: finished tasks leave once they are old enough; a tombstone keeps each id from a second life."""

from __future__ import annotations

from typing import Final

from relet.core import limits
from relet.core.backend import Request
from relet.core.fields import AgeMs, Cursor, Name
from relet.core.model import Instants
from relet.core.operation import Operation
from relet.core.payload import digest
from relet.core.rules.cancel import Batch
from relet.core.tx import TaskRow, Tx


class Prune(Request, frozen=True, kw_only=True):
    """One batch of finished tasks, of all queues or of one; `after` is the last batch's `cursor`."""

    queue: Name | None = None
    older_ms: AgeMs | None = None
    """How long ago they must have finished; None means as long ago as their queue keeps them."""
    dry_run: bool = False
    after: Cursor = 0


async def prune(tx: Tx, ask: Prune) -> Batch:
    """Remove what nobody can miss: never what is held, waits, has an open effect, or a receipt that must be kept."""
    at = await tx.instants()
    if ask.older_ms is None and not await tx.has_retention():
        return Batch(ids=[], cursor=None)
    last_event, last_task = await tx.last_event(), await tx.last_task()
    upto = min(ask.after + limits.PRUNE_SPAN, last_task)
    cursor = None if upto >= last_task else upto
    most = limits.PRUNE_ITEMS_MAX
    rows = await tx.lock_prunable(ask.queue, ask.older_ms, at.wall_ms, ask.after, upto, most)
    ids: list[str] = []
    removed = 0
    for task in rows:
        # The end of all events stays: the next one gets a number that no watcher has seen.
        if task.last_event >= last_event or not await _may_go(tx, task, at):
            continue
        ids.append(task.id)
        if not ask.dry_run:
            removed += await tx.remove_task(task, None if task.result is None else digest(task.result), at)
        if removed >= limits.PRUNE_ROWS:
            return Batch(ids=ids, cursor=task.seq)
    return Batch(ids=ids, cursor=rows[-1].seq if len(rows) == most else cursor)


async def _may_go(tx: Tx, task: TaskRow, at: Instants) -> bool:
    """Are its receipts older than what was promised of them."""
    for effect in await tx.lock_effects_of(task.seq):
        kept_ms = max(effect.contract.retention_ms or 0, limits.RECEIPTS_KEPT_MS)
        if at.wall_ms < effect.updated_wall_ms + kept_ms:
            return False
    return True


PRUNE: Final = Operation(
    "prune", Prune, Batch, prune, "Remove finished tasks that are old enough.", for_agents=False, unlinks=True
)
