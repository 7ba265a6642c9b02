"""What a run is told when it has to stop for a reason of the worker's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relet.core.errors import Error, LeaseLost
from relet.core.model import LostReason
from relet.worker.execute import DEADLINE_CODE, TIMEOUT_CODE

if TYPE_CHECKING:
    from relet.client.blocking_lease import Lease
    from relet.worker.slots import Slot


def told(lease: Lease, reason: LostReason, why: str, code: str | None = None) -> LeaseLost:
    """What a run hears that has to stop, for this reason and with this cause in words."""
    return LeaseLost(
        f"task {lease.task_id}: {why}; stop this work", reason=reason, token=lease.token, code=code,
        task_id=lease.task_id,
    )  # fmt: skip


def out_of_time(slot: Slot) -> Error:
    """What the run of a slot hears once its timeout is over, or its deadline has come."""
    why, code = f"its timeout of {slot.timeout_ms} ms is over", TIMEOUT_CODE
    if slot.by_deadline:
        why, code = "its deadline has come", DEADLINE_CODE
    return told(slot.lease, LostReason.EXPIRED, why, code)
