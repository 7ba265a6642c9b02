"""audit: append to the log of what was done through the service, and read it; no payload is ever in it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from relet.core import limits
from relet.core.audit import chained
from relet.core.border import invalid, storable, text
from relet.core.errors import Error
from relet.core.keys_tx import AuditRow
from relet.core.model import date
from relet.core.operation import Operation
from relet.core.tx import Tx


class Act(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that somebody did, or was kept from doing."""

    key_id: str | None
    """None where no key was shown, or one that there is not."""
    key_name: str | None
    tenant: str | None
    operation: str
    outcome: str
    """`ok`, or the code of the error."""
    target: str | None = None
    """The id of a task or of a key, or the name of a queue."""
    address: str | None = None
    """Where it came from."""
    ago_ms: int = 0
    """How long ago it was when this was sent."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the log; its number and its digest tell whether any before it is missing, or altered."""

    seq: int
    at: datetime
    key_id: str | None
    key_name: str | None
    tenant: str | None
    operation: str
    target: str | None
    outcome: str
    address: str | None
    digest: str


class AddAudit(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, in its order."""

    acts: list[Act]


class ListAudit(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the log, newest first; `before` is the last number of the page before. With `after` oldest first."""

    tenant: str | None = None
    """One tenant's; null for all, and for those that are nobody's."""
    before: int | None = None
    after: int | None = None
    """Go on behind this number, 0 for the first line that there is."""
    limit: int = limits.PAGE_ITEMS


async def add_audit(tx: Tx, ask: AddAudit) -> int | Error:
    """The number of the last line."""
    if len(ask.acts) > limits.AUDIT_ITEMS_MAX:
        return invalid("acts", f"has {len(ask.acts)} items; give at most {limits.AUDIT_ITEMS_MAX} in one call")
    last, digest, at = await tx.lock_audit_end()
    rows = []
    for seq, act in enumerate(ask.acts, last + 1):
        row = AuditRow(
            seq=seq, wall_ms=at.wall_ms - act.ago_ms, key_id=act.key_id, key_name=_named(act.key_name),
            tenant=_named(act.tenant), operation=_cut(act.operation),
            target=None if act.target is None else _cut(act.target), outcome=act.outcome,
            address=_named(act.address), digest="",
        )  # fmt: skip
        row.digest = digest = chained(digest, row)
        rows.append(row)
    if rows:
        await tx.add_audit(rows)
    return last + len(rows)


async def list_audit(tx: Tx, ask: ListAudit) -> list[AuditEntry]:
    """Whose scope it is has been asked before."""
    before = ask.before or limits.TOKEN_MAX
    if ask.after is None:
        rows = await tx.find_audit(ask.tenant, before, ask.limit)
    else:
        rows = await tx.find_audit_after(ask.tenant, ask.after, before, ask.limit)
    return [_entry(**msgspec.structs.asdict(row)) for row in rows]


def _entry(*, wall_ms: int, **row: Any) -> AuditEntry:
    return AuditEntry(at=date(wall_ms), **row)


def _named(value: str | None) -> str | None:
    """A name, or an address: by them the log is asked, whatever values are secrets of the process that writes it."""
    return None if value is None else storable(value)[: limits.NAME_CHARS_MAX]


def _cut(value: str) -> str:
    """As a stranger may have sent it: cut rather than refused, so that no line is ever missing."""
    return text(value, most=limits.NAME_CHARS_MAX)


# Not in the catalog: the log has a scope of its own, and nobody appends to it but the service. Where nobody can say
# whether a line was kept, it is written again: twice rather than never.
ADD_AUDIT: Final = Operation("add_audit", AddAudit, int, add_audit, "Append to the audit log.")
LIST_AUDIT: Final = Operation(
    "list_audit", ListAudit, list[AuditEntry], list_audit, "The audit log.", writes=False
)  # fmt: skip
