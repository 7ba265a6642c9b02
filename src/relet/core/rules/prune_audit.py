"""prune_audit: the oldest lines of the audit log leave, and the log itself tells of it."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

import msgspec

from relet.core import limits
from relet.core.audit import PRUNED, anchor, chained
from relet.core.border import invalid
from relet.core.errors import Error
from relet.core.keys_tx import AuditRow
from relet.core.operation import Operation
from relet.core.tx import Tx


class PruneAudit(msgspec.Struct, frozen=True, kw_only=True):
    """One batch of lines that are so old; with `recent_too` also of those that are kept unless somebody says so."""

    older_ms: int
    recent_too: bool = False
    dry_run: bool = False
    after: int = 0
    """Where a dry run goes on: behind the last line that would have left."""


class PrunedAudit(msgspec.Struct, frozen=True, kw_only=True):
    """What left in one batch, or would have left."""

    removed: int
    upto: int | None
    """The number of the last of them."""
    more: bool
    """There may be as old ones left."""


async def prune_audit(tx: Tx, ask: PruneAudit) -> PrunedAudit | Error:
    """From the first line on, up to one that is younger: what is left is one chain, behind what a new line tells."""
    if ask.older_ms < limits.AUDIT_KEPT_MS and not ask.recent_too:
        return invalid(
            "older_ms",
            f"what is younger than {limits.AUDIT_KEPT_MS // limits.DAY_MS} days stays in the audit log. Nothing was "
            "removed. Give a longer time, or say that you mean it → relet audit --prune --older AGE --recent-too",
        )
    seq, digest, at = await tx.lock_audit_end()
    most = limits.AUDIT_PRUNED_MAX
    rows = await tx.find_audit_after(None, ask.after if ask.dry_run else 0, limits.TOKEN_MAX, most)
    old = list(takewhile(lambda row: row.wall_ms <= at.wall_ms - ask.older_ms, rows))
    if not old:
        return PrunedAudit(removed=0, upto=None, more=False)
    last = old[-1]
    answer = PrunedAudit(removed=len(old), upto=last.seq, more=len(old) == most)
    if ask.dry_run:
        return answer
    told = AuditRow(
        seq=seq + 1, wall_ms=at.wall_ms, key_id=None, key_name=None, tenant=None, operation=PRUNED,
        target=anchor(last), outcome="ok", address=None, digest="",
    )  # fmt: skip
    told.digest = chained(digest, told)
    await tx.remove_audit(last.seq)
    await tx.add_audit([told])
    return answer


# Not in the catalog: whoever may read the log, or is an admin of a tenant, removes nothing of it. A batch that is
# repeated finds nothing more that is old, or the next ones.
PRUNE_AUDIT: Final = Operation(
    "prune_audit", PruneAudit, PrunedAudit, prune_audit, "Remove old lines of the audit log."
)  # fmt: skip
