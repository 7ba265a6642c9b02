"""set_queue: knobs that hold for the tasks of one queue."""

from __future__ import annotations

from relet.core.backend import Request
from relet.core.tx import QueueRow, Tx

KNOBS = ("paused", "ttl_ms", "timeout_ms", "max_hold_ms", "max_attempts", "max_losses", "retention_ms")


class SetQueue(Request, frozen=True, kw_only=True):
    """Knobs of a queue; None leaves one as it is."""

    name: str
    paused: bool | None = None
    ttl_ms: int | None = None
    timeout_ms: int | None = None
    max_hold_ms: int | None = None
    max_attempts: int | None = None
    max_losses: int | None = None
    retention_ms: int | None = None


async def set_queue(tx: Tx, ask: SetQueue) -> QueueRow:
    """The queue's knobs after the change; without one, as they are."""
    row = await tx.find_queue(ask.name) or QueueRow(tx.tenant, ask.name, False, None, None, None, None, None)
    changes = {field: value for field in KNOBS if (value := getattr(ask, field)) is not None}
    for field, value in changes.items():
        setattr(row, field, value)
    if changes:
        await tx.put_queue(row)
    return row
