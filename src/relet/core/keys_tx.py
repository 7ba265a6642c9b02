"""The part of the port that the service asks for: API keys, and the log of what was done with them.

Neither belongs to the tenant that a transaction is bound to: a key says which tenant it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from relet.core.access import Role, Scope
from relet.core.model import Instants


class KeyRow(msgspec.Struct):
    """One key as stored; it is never removed, so that what was done with it can be told for ever."""

    id: str
    digest: str
    name: str
    tenant: str
    role: Role
    scopes: list[Scope]
    """Those that it has beside its role's."""
    queues: list[str] | None
    """Those that it is bound to."""
    created_wall_ms: int
    expires_wall_ms: int | None = None
    revoked_wall_ms: int | None = None
    used_wall_ms: int | None = None


class AuditRow(msgspec.Struct):
    """One line of the log; `digest` binds it to all lines before it."""

    seq: int
    wall_ms: int
    key_id: str | None
    key_name: str | None
    tenant: str | None
    operation: str
    target: str | None
    outcome: str
    address: str | None
    digest: str


class AuditEnd(NamedTuple):
    """The last line of the log, locked: the next one is bound to it."""

    seq: int
    digest: str
    at: Instants


class KeysTx(Protocol):
    """Asked by whoever looks after a store, and by the service itself."""

    async def insert_key(self, row: KeyRow) -> bool:
        """False where a key of this id, or one of this name that is not revoked, is there already."""

    async def find_keys_of(self, key_ids: Sequence[str]) -> list[KeyRow]:
        """Those that there are, in any order."""

    async def find_key_named(self, name: str) -> KeyRow | None:
        """The one that is not revoked, else the newest of those that are."""

    async def find_keys(self, after: str, limit: int, *, revoked: bool) -> list[KeyRow]: ...
    async def revoke_key(self, key_id: str, wall_ms: int) -> None:
        """One that was revoked before stays so from then."""

    async def note_uses(self, key_ids: Sequence[str], wall_ms: int) -> None: ...
    async def lock_audit_end(self) -> AuditEnd: ...
    async def add_audit(self, rows: Sequence[AuditRow]) -> None:
        """Behind the end that was locked; the last of them is the end from now on."""

    async def find_audit(self, tenant: str | None, before: int, limit: int) -> list[AuditRow]:
        """From the newest on."""

    async def find_audit_after(self, tenant: str | None, after: int, before: int, limit: int) -> list[AuditRow]:
        """From the oldest on."""

    async def remove_audit(self, upto: int) -> None:
        """The oldest lines, with the one of this number; its digest stays with whoever removes them."""
