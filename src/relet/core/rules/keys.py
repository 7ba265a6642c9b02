"""keys: make, find, list and revoke API keys of the service; asked by whoever looks after the store itself."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from relet.core import limits
from relet.core.access import SCOPES_OF, Access, Role, Scope
from relet.core.errors import Conflict, Error, NotFound
from relet.core.keys_tx import KeyRow
from relet.core.model import Instants, date, maybe_date
from relet.core.operation import Operation
from relet.core.pasting import command
from relet.core.tx import Tx


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key, without what would open anything."""

    id: str
    name: str
    tenant: str
    role: Role
    scopes: list[Scope]
    """All that it has: those of its role, and those that were given by name."""
    queues: list[str] | None
    """Those that it is bound to; None for all."""
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None
    """When its last use was noted, which the service does every so often."""
    expired: bool
    revoked: bool

    @property
    def good(self) -> bool:
        """May it be used."""
        return not (self.expired or self.revoked)

    @property
    def access(self) -> Access:
        """What it allows, as long as it is good."""
        return Access(
            key_id=self.id, name=self.name, tenant=self.tenant, role=self.role, scopes=frozenset(self.scopes),
            queues=self.queues,
        )  # fmt: skip


class FoundKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key with the digest that what is shown must have."""

    key: Key
    digest: str


class MakeKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key whose text only its maker knows."""

    id: str
    digest: str
    name: str
    tenant: str
    role: Role
    scopes: list[Scope] = []
    """Beside those of its role."""
    queues: list[str] | None = None
    expires_ms: int | None = None
    """From now on; null for never."""


class FindKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of ids, good or not, in the order of these; the same id may be asked for several times."""

    ids: list[str]


class ListKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A page of keys, by id; with `revoked` also those that are."""

    after: str = ""
    limit: int = limits.PAGE_ITEMS
    revoked: bool = False


class RevokeKey(msgspec.Struct, frozen=True, kw_only=True):
    """The key of an id, or of a name."""

    which: str


class NoteUses(msgspec.Struct, frozen=True, kw_only=True):
    """Keys that were used since it was last said of them."""

    ids: list[str]


async def make_key(tx: Tx, ask: MakeKey) -> Key | Error:
    """A name means one key at a time. The same request again is answered alike."""
    at = await tx.instants()
    row = KeyRow(
        id=ask.id, digest=ask.digest, name=ask.name, tenant=ask.tenant, role=ask.role, scopes=ask.scopes,
        queues=ask.queues, created_wall_ms=at.wall_ms,
        expires_wall_ms=None if ask.expires_ms is None else at.wall_ms + ask.expires_ms,
    )  # fmt: skip
    if await tx.insert_key(row):
        return _key(row, at)
    for made in await tx.find_keys_of([ask.id]):
        if made.digest == ask.digest:
            return _key(made, at)
    return Conflict(
        f"there is a key with the name {ask.name}, and it is not revoked; none was made. Give another name, or "
        f"revoke that one → {command('token revoke', ask.name)}",
        name=ask.name,
    )  # fmt: skip


async def find_keys(tx: Tx, ask: FindKeys) -> list[FoundKey | None]:
    """By wall time: an expiry is a date."""
    rows, at = await tx.find_keys_of(list(dict.fromkeys(ask.ids))), await tx.instants()
    found = {row.id: FoundKey(key=_key(row, at), digest=row.digest) for row in rows}
    return [found.get(key_id) for key_id in ask.ids]


async def list_keys(tx: Tx, ask: ListKeys) -> list[Key]:
    """Expired ones too: they keep their names until they are revoked."""
    rows, at = await tx.find_keys(ask.after, ask.limit, revoked=ask.revoked), await tx.instants()
    return [_key(row, at) for row in rows]


async def revoke_key(tx: Tx, ask: RevokeKey) -> Key | Error:
    """For good; one that is revoked already stays so from the first time on."""
    at = await tx.instants()
    row = next(iter(await tx.find_keys_of([ask.which])), None) or await tx.find_key_named(ask.which)
    if row is None:
        return NotFound(f"there is no key with the id or the name {ask.which} → relet token ls", key=ask.which)
    if row.revoked_wall_ms is None:
        row.revoked_wall_ms = at.wall_ms
        await tx.revoke_key(row.id, at.wall_ms)
    return _key(row, at)


async def note_uses(tx: Tx, ask: NoteUses) -> int:
    """How many were named. Without a flush: what a crash takes is only when a key was used last."""
    at = await tx.instants()
    # In one order, whoever says it: two services that note the same keys do not wait for each other crosswise.
    ids = sorted(set(ask.ids))
    await tx.note_uses(ids, at.wall_ms)
    return len(ids)


def _key(row: KeyRow, at: Instants) -> Key:
    return Key(
        id=row.id, name=row.name, tenant=row.tenant, role=row.role,
        scopes=[scope for scope in Scope if scope in SCOPES_OF[row.role] or scope in row.scopes],
        queues=row.queues, created_at=date(row.created_wall_ms),
        expires_at=maybe_date(row.expires_wall_ms), revoked_at=maybe_date(row.revoked_wall_ms),
        used_at=maybe_date(row.used_wall_ms), revoked=row.revoked_wall_ms is not None,
        expired=row.expires_wall_ms is not None and row.expires_wall_ms <= at.wall_ms,
    )  # fmt: skip


# Not in the catalog: who may work in a tenant makes no keys, and hears of none.
MAKE_KEY: Final = Operation("make_key", MakeKey, Key, make_key, "Make an API key.")
FIND_KEYS: Final = Operation(
    "find_keys", FindKeys, list[FoundKey | None], find_keys, "API keys by their ids.", writes=False
)
LIST_KEYS: Final = Operation("list_keys", ListKeys, list[Key], list_keys, "API keys.", writes=False)
REVOKE_KEY: Final = Operation("revoke_key", RevokeKey, Key, revoke_key, "Revoke an API key.")
NOTE_USES: Final = Operation("note_uses", NoteUses, int, note_uses, "When API keys were used last.", durable=False)
