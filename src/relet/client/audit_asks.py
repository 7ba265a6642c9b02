"""What is asked of the audit log, as requests: parsed here once; and which of its lines somebody wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from relet.core import border, limits
from relet.core.rules.audit import AuditEntry, ListAudit
from relet.core.rules.prune_audit import PruneAudit, PrunedAudit

Read = Callable[[ListAudit], list[AuditEntry]]
"""A page of the log, wherever it is."""


class Wanted(NamedTuple):
    """Lines that are wanted; None for any."""

    operation: str | None = None
    key: str | None = None
    """An id, or a name."""
    outcome: str | None = None
    since: datetime | None = None

    def fits(self, line: AuditEntry) -> bool:
        """Is this line one of them."""
        return (
            self.operation in (None, line.operation)
            and (self.key is None or self.key in (line.key_id, line.key_name))
            and self.outcome in (None, line.outcome)
            and (self.since is None or line.at >= self.since)
        )


def list_audit(tenant: str | None, before: Any, after: Any) -> ListAudit:
    """The first of the pages that are asked for: backwards from the newest line or `before`, or on from `after`."""
    most = limits.TOKEN_MAX
    return ListAudit(
        tenant=None if tenant is None else border.name("tenant", tenant), limit=limits.PAGE_ITEMS_MAX,
        before=None if before is None else border.whole("before", before, least=1, most=most),
        after=None if after is None else border.whole("after", after, least=0, most=most),
    )  # fmt: skip


def lines_of(read: Read, first: ListAudit, wanted: Wanted) -> Iterator[AuditEntry]:
    """Those that are wanted, page by page, whatever is between them."""
    ask = first
    while page := read(ask):
        yield from filter(wanted.fits, page)
        last = page[-1]
        is_past = ask.after is None and wanted.since is not None and page[0].at < wanted.since
        if len(page) < ask.limit or is_past:
            return
        ask = replace(ask, before=last.seq) if ask.after is None else replace(ask, after=last.seq)


def prune_audit(older: Any, *, recent_too: Any, dry_run: Any) -> PruneAudit:
    """One batch of lines that leave."""
    return PruneAudit(
        older_ms=border.duration_ms("older", older, least=limits.PRUNE_AGE_MS_MIN),
        recent_too=border.flag("recent_too", recent_too), dry_run=border.flag("dry_run", dry_run),
    )  # fmt: skip


def pruned(operate: Callable[[PruneAudit], PrunedAudit], first: PruneAudit) -> PrunedAudit:
    """What left batch by batch, or would have: all of them but where there are more than one command goes through."""
    ask, removed, upto = first, 0, None
    for _ in range(limits.AUDIT_BATCHES_MAX):
        batch = operate(ask)
        removed, upto = removed + batch.removed, batch.upto or upto
        if not batch.more:
            return PrunedAudit(removed=removed, upto=upto, more=False)
        if ask.dry_run:
            ask = replace(ask, after=batch.upto)
    return PrunedAudit(removed=removed, upto=upto, more=True)
