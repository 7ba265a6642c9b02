"""The part of the port that API keys and the audit log ask for, over named statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from relet.core.keys_tx import AuditEnd, AuditRow, KeyRow
from relet.store.rows import key_of
from relet.store.runner import Runner

KEY_STATEMENTS: Final = frozenset([
    "insert_api_key", "find_api_keys_of", "find_api_key_named", "find_api_keys", "revoke_api_key", "note_use",
    "lock_audit_end", "add_audit", "move_audit_end", "find_audit", "find_audit_of",
    "find_audit_after", "find_audit_after_of", "remove_audit",
])  # fmt: skip


class SqlKeys:
    """As the rules of keys and of the log ask it."""

    run: Runner

    async def insert_key(self, row: KeyRow) -> bool:
        values = msgspec.structs.asdict(row) | {
            "role": str(row.role),
            "scopes": msgspec.json.encode(row.scopes).decode(),
            "queues": None if row.queues is None else msgspec.json.encode(row.queues).decode(),
        }
        return await self.run.one("insert_api_key", values) is not None

    async def find_keys_of(self, key_ids: Sequence[str]) -> list[KeyRow]:
        rows = await self.run.all("find_api_keys_of", {"ids": msgspec.json.encode(key_ids).decode()})
        return [key_of(row) for row in rows]

    async def find_key_named(self, name: str) -> KeyRow | None:
        row = await self.run.one("find_api_key_named", {"name": name})
        return None if row is None else key_of(row)

    async def find_keys(self, after: str, limit: int, *, revoked: bool) -> list[KeyRow]:
        rows = await self.run.all("find_api_keys", {"after": after, "revoked": revoked, "limit": limit})
        return [key_of(row) for row in rows]

    async def revoke_key(self, key_id: str, wall_ms: int) -> None:
        await self.run.do("revoke_api_key", {"id": key_id, "wall_ms": wall_ms})

    async def note_uses(self, key_ids: Sequence[str], wall_ms: int) -> None:
        await self.run.do_many("note_use", [{"id": key_id, "wall_ms": wall_ms} for key_id in key_ids])

    async def lock_audit_end(self) -> AuditEnd:
        row = await self.run.one("lock_audit_end", {})
        assert row is not None, "RETURNING answers the single row"
        return AuditEnd(row[0], row[1], await self.run.instants())

    async def add_audit(self, rows: Sequence[AuditRow]) -> None:
        await self.run.do_many("add_audit", [msgspec.structs.asdict(row) for row in rows])
        await self.run.do("move_audit_end", {"seq": rows[-1].seq, "digest": rows[-1].digest})

    async def find_audit(self, tenant: str | None, before: int, limit: int) -> list[AuditRow]:
        params = {"before": before, "limit": limit}
        if tenant is None:
            return _lines(await self.run.all("find_audit", params))
        return _lines(await self.run.all("find_audit_of", {**params, "tenant": tenant}))

    async def find_audit_after(self, tenant: str | None, after: int, before: int, limit: int) -> list[AuditRow]:
        params = {"after": after, "before": before, "limit": limit}
        if tenant is None:
            return _lines(await self.run.all("find_audit_after", params))
        return _lines(await self.run.all("find_audit_after_of", {**params, "tenant": tenant}))

    async def remove_audit(self, upto: int) -> None:
        await self.run.do("remove_audit", {"upto": upto})


def _lines(rows: Iterable[Any]) -> list[AuditRow]:
    return [AuditRow(*row) for row in rows]
