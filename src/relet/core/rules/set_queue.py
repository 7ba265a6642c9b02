"""set_queue: knobs and limits that hold for the tasks of one queue."""

from __future__ import annotations

from typing import Final

from relet.core import limits
from relet.core.backend import Request
from relet.core.fields import Attempts, DurationMs, MaxHoldMs, Name, Places, Rate, RateMs, SpanMs, TtlMs
from relet.core.operation import Operation
from relet.core.tx import QueueRow, Tx

KNOBS = ("paused", "ttl_ms", "timeout_ms", "max_hold_ms", "max_attempts", "max_losses", "retention_ms")
LIMITS = ("concurrency", "share_concurrency", "rate", "rate_ms")
LIFTED = 0
"""A limit that is taken away, and a retention: tasks are kept for ever again."""
LIFTABLE = (*LIMITS, "retention_ms")


class SetQueue(Request, frozen=True, kw_only=True):
    """Knobs of a queue; None leaves one as it is, and 0 lifts a limit or a retention."""

    name: Name
    paused: bool | None = None
    ttl_ms: TtlMs | None = None
    timeout_ms: SpanMs | None = None
    max_hold_ms: MaxHoldMs | None = None
    max_attempts: Attempts | None = None
    max_losses: Attempts | None = None
    retention_ms: DurationMs | None = None
    concurrency: Places | None = None
    share_concurrency: Places | None = None
    rate: Rate | None = None
    rate_ms: RateMs | None = None

    def at_odds(self) -> tuple[str, str] | None:
        """A rate is grants in a time, and is lifted with it; a retention is none, or not too short."""
        if (self.rate is None) != (self.rate_ms is None) or bool(self.rate) != bool(self.rate_ms):
            return "rate_ms", "goes with rate: give both, above 0, or both as 0 to lift the rate"
        if LIFTED != (self.retention_ms or LIFTED) < limits.PRUNE_AGE_MS_MIN:
            return "retention_ms", f"{self.retention_ms} is too short; give {limits.PRUNE_AGE_MS_MIN} at least, or 0"
        return None


async def set_queue(tx: Tx, ask: SetQueue) -> QueueRow:
    """The queue's knobs after the change; without one, as they are.

    Leases that are live when a limit comes are counted by it, and are not ended, were they more than it allows.
    """
    row = await tx.find_queue(ask.name) or QueueRow(tx.tenant, ask.name, False, None, None, None, None, None)
    was_counted = row.is_counted
    changes = {field: value for field in (*KNOBS, *LIMITS) if (value := getattr(ask, field)) is not None}
    for field, value in changes.items():
        setattr(row, field, None if field in LIFTABLE and value == LIFTED else value)
    if changes:
        await tx.put_queue(row)
    if row.is_counted and not was_counted:
        await tx.fill_places(row.name)
    elif was_counted and not row.is_counted:
        await tx.drop_places(row.name)
    return row


SET_QUEUE: Final = Operation(
    "set_queue", SetQueue, QueueRow, set_queue, "Set the knobs of a queue.", for_agents=False
)
