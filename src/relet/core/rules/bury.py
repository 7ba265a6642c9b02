"""bury: lapse at once what a dead process held. Asked by engines alone, which hold the proof while they ask."""

from __future__ import annotations

import msgspec

from relet.core import limits
from relet.core.rules.lapse import lapse
from relet.core.tx import HolderRow, Tx


class Bind(msgspec.Struct, frozen=True, kw_only=True):
    """A process that holds a lock, for as long as it lives."""

    row: HolderRow


class FindHolders(msgspec.Struct, frozen=True, kw_only=True):
    """All locks that leases may be bound to."""


class Bury(msgspec.Struct, frozen=True, kw_only=True):
    """A lock that its process has let go of by its end; one batch, call again while `more`."""

    lock: str


class Forget(msgspec.Struct, frozen=True, kw_only=True):
    """A lock that proves nothing any more; kept while a lease is bound to it, unless `anyhow`."""

    lock: str
    anyhow: bool = False


class Buried(msgspec.Struct, frozen=True, kw_only=True):
    """How many leases were ended, and may more be waiting."""

    n: int
    more: bool


async def bind(tx: Tx, ask: Bind) -> None:
    """Write down whose end will prove the death of a holder."""
    await tx.put_holder(ask.row)


async def find_holders(tx: Tx, ask: FindHolders) -> list[HolderRow]:  # noqa: ARG001 - every rule takes its request
    """Every lock; one for each worker of this machine, whatever it holds."""
    return await tx.find_holders()


async def bury(tx: Tx, ask: Bury) -> Buried:
    """Lapse the open leases that are still bound to the lock. The last batch forgets the lock."""
    leases, at = await tx.lock_bound(ask.lock, limits.LAPSES_PER_BATCH)
    for lease in leases:
        await lapse(tx, lease, await tx.lock_task_of(lease.task_seq), at, died=True)
    more = len(leases) == limits.LAPSES_PER_BATCH
    if not more:
        await tx.drop_holder(ask.lock)
    return Buried(n=len(leases), more=more)


async def forget(tx: Tx, ask: Forget) -> bool:
    """Drop the lock, which leaves its leases to their ttl; was it dropped."""
    leases, _ = await tx.lock_bound(ask.lock, 1)
    if leases and not ask.anyhow:
        return False
    await tx.drop_holder(ask.lock)
    return True
