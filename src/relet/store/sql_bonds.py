"""The statements that tie leases to processes, for every SQL engine."""

from __future__ import annotations

from typing import Final

from relet.core.bond import bound
from relet.core.model import Instants
from relet.core.tx import HolderRow, LeaseRow
from relet.store.rows import lease_of
from relet.store.runner import Runner

BOND_STATEMENTS: Final = frozenset(["lock_bound", "loosen_lease", "put_holder", "drop_holder", "find_holders"])


class SqlBonds:
    """What rules may ask of bonds."""

    run: Runner

    async def find_holders(self) -> list[HolderRow]:
        return [HolderRow(*row) for row in await self.run.all("find_holders", {})]

    async def lock_bound(self, lock: str, limit: int) -> tuple[list[LeaseRow], Instants]:
        rows = await self.run.all("lock_bound", {"bond": bound(lock, ""), "limit": limit})
        return [lease_of(row) for row in rows], await self.run.instants()

    async def loosen_lease(self, token: int) -> None:
        await self.run.do("loosen_lease", {"token": token})

    async def put_holder(self, row: HolderRow) -> None:
        await self.run.do_row("put_holder", row)

    async def drop_holder(self, lock: str) -> None:
        await self.run.do("drop_holder", {"lock": lock})

    def is_ours(self, lock: str) -> bool:
        return self.run.is_ours(lock)
