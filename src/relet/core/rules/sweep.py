"""sweep: close what has lapsed and what is overdue, in bounded batches, each re-judged under its lock."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.operation import Operation
from relet.core.rules.answer import close_unanswered
from relet.core.rules.lapse import close_lapsed, close_overdue
from relet.core.tx import Tx


class Sweep(Request, frozen=True, kw_only=True):
    """One batch; call again while `more`."""


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """Leases closed by lapse, tasks failed by their deadline, waits ended by time; and may more be waiting."""

    lapsed: int
    overdue: int
    unanswered: int
    more: bool


async def sweep(tx: Tx, ask: Sweep) -> Swept:  # noqa: ARG001 - every rule takes its request
    """Look only at leases whose time to be looked at has come; never act on an older list."""
    lapsed, more = await close_lapsed(tx)
    overdue, later = await close_overdue(tx)
    unanswered, others = await close_unanswered(tx, limits.LAPSES_PER_BATCH)
    await tx.clear_places(None, None)
    return Swept(lapsed=lapsed, overdue=overdue, unanswered=unanswered, more=more or later or others)


SWEEP: Final = Operation("sweep", Sweep, Swept, sweep, "Close what has lapsed and what is overdue.", for_agents=False)
