"""tenants: which namespaces a store has; asked of the file by an operator, and never by one tenant of another."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core import limits
from relet.core.operation import Operation
from relet.core.tx import Tx


class FindTenants(msgspec.Struct, frozen=True, kw_only=True):
    """A page of tenants by name."""

    after: str = ""
    limit: int = limits.PAGE_ITEMS


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace of tasks, and how many queues it has or had."""

    name: str
    queues: int


async def tenants(tx: Tx, ask: FindTenants) -> list[Tenant]:
    """Those that ever had a task or set a queue; cheap however many tasks there are."""
    return await tx.find_tenants(ask.after, ask.limit)


# Not in the catalog: who may work in one tenant need not hear the names of the others.
TENANTS: Final = Operation("tenants", FindTenants, list[Tenant], tenants, "All tenants.", writes=False)
