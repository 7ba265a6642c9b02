"""sweep: close what has lapsed and what is overdue, in bounded batches, each re-judged under its lock."""

from __future__ import annotations

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.rules.lapse import close_lapsed, miss_deadline
from relet.core.tx import Tx


class Sweep(Request, frozen=True, kw_only=True):
    """One batch; call again while `more`."""


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """Leases closed by lapse, tasks failed by their deadline, and whether more may be waiting."""

    lapsed: int
    overdue: int
    more: bool


async def sweep(tx: Tx, ask: Sweep) -> Swept:  # noqa: ARG001 - every rule takes its request
    """Look only at leases whose time to be looked at has come; never act on an older list."""
    lapsed, more = await close_lapsed(tx, limits.LAPSES_PER_BATCH)
    tasks, at = await tx.lock_overdue(limits.LAPSES_PER_BATCH)
    for task in tasks:
        await miss_deadline(tx, task, at)
    return Swept(lapsed=lapsed, overdue=len(tasks), more=more or len(tasks) == limits.LAPSES_PER_BATCH)
