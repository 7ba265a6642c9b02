"""absent: there is no such task, or none any more. Shared by every rule that is asked about one by its id."""

from __future__ import annotations

from relet.core.errors import NotFound
from relet.core.model import date
from relet.core.tx import Tx


async def no_task(tx: Tx, task_id: str) -> NotFound:
    """The refusal: no such task was ever there, or it was pruned, and when."""
    if (pruned_ms := await tx.find_tombstone(task_id)) is not None:
        return NotFound(
            f"task_id: task {task_id} had finished, and was pruned on {date(pruned_ms):%Y-%m-%d}",
            code="RELET-GONE", field="task_id", task_id=task_id,
        )  # fmt: skip
    return NotFound(f"task_id: there is no task {task_id} here", field="task_id", task_id=task_id)
