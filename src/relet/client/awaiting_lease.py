"""The awaiting lease: the verbs of `Lease`, awaited, and the block that is cancelled on a loss."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from relet.client.block_guard import BlockGuard
from relet.client.blocking_lease import Lease
from relet.client.lease import BY_ITS_HOLDER, LEFT_OPEN, HeldLease, LostInBlock, is_store_away
from relet.client.renewal import THREAD, from_beside
from relet.core.errors import LeaseLost
from relet.core.rules.finish import Ended
from relet.core.work import Artifact, Decision

if TYPE_CHECKING:
    from relet.client.awaiting import AsyncClient
    from relet.client.durable.run import AsyncRun


class AsyncLease(HeldLease):
    """One task, held; the verbs of `Lease`, awaited. As an `async with` block its task is cancelled on a loss."""

    def __init__(self, client: AsyncClient, lease: Lease) -> None:
        super().__init__(lease.belief, lease.following)
        self.blocking = lease
        self._client = client
        self._guard = BlockGuard(lease.belief)

    async def renew(self, ttl: Any = None) -> float:
        """As `Lease.renew`."""
        return float(await self._client.hop(self.blocking.renew, ttl))

    async def check(self, need: Any = 0) -> None:
        """As `Lease.check`."""
        self.belief.require(need)
        if self.belief.is_doubtful():
            await self._client.hop(self.blocking.check, need)

    async def save(self, value: Any, name: str = "main") -> int:
        """As `Lease.save`."""
        return int(await self._client.hop(self.blocking.save, value, name))

    async def load(self, name: str = "main") -> Any:
        """As `Lease.load`."""
        return await self._client.hop(self.blocking.load, name)

    async def attach(self, name: str, source: bytes | str | os.PathLike[str]) -> Artifact:
        """As `Lease.attach`."""
        artifact: Artifact = await self._client.hop(self.blocking.attach, name, source)
        return artifact

    async def open(self, name: str) -> BinaryIO:
        """As `Lease.open`."""
        found: BinaryIO = await self._client.hop(self.blocking.open, name)
        return found

    async def progress(self, note: str) -> None:
        """As `Lease.progress`."""
        await self._client.hop(self.blocking.progress, note)

    async def park(
        self, name: str, kind: str = "approval", ask: Any = None, timeout: Any = None, default: Any = None
    ) -> Ended:
        """As `Lease.park`."""
        ended: Ended = await self._client.hop(self.blocking.park, name, kind, ask, timeout, default)
        return ended

    async def answer(self, name: str) -> Decision | None:
        """As `Lease.answer`."""
        decision: Decision | None = await self._client.hop(self.blocking.answer, name)
        return decision

    @asynccontextmanager
    async def run(self) -> AsyncIterator[AsyncRun]:
        """As `Lease.run`; once the run must stop, the block's task is cancelled."""
        from relet.client.durable.run import AsyncRun, block

        async with self:
            with block(AsyncRun(self.blocking, self._client, asyncio.get_running_loop())) as run:
                yield run

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """As `Lease.transaction`; use the connection by short, blocking calls."""
        own = self.blocking.transaction()
        connection = await self._client.hop(own.__enter__)
        try:
            yield connection
        except BaseException as raised:
            if not await self._client.hop(own.__exit__, type(raised), raised, raised.__traceback__):
                raise
        else:
            await self._client.hop(own.__exit__, None, None, None)

    async def complete(
        self, result: Any = None, claim_next: bool = False, request_id: str | None = None, *, tx: Any = None
    ) -> AsyncLease | None:
        """As `Lease.complete`."""

        def complete() -> list[Lease]:
            lease = self.blocking.complete(result, claim_next, request_id, tx=tx)
            return [] if lease is None else [lease]

        leases = await self._client.granted(complete, request_id)
        return AsyncLease(self._client, leases[0]) if leases else None

    async def fail(self, error: str, retry: bool = True, delay: Any = None, code: str | None = None) -> Ended:
        """As `Lease.fail`."""
        ended: Ended = await self._client.hop(self.blocking.fail, error, retry, delay, code)
        return ended

    async def release(self, delay: Any = 0) -> Ended:
        """As `Lease.release`."""
        ended: Ended = await self._client.hop(self.blocking.release, delay)
        return ended

    @asynccontextmanager
    async def keep(self, interval: Any = None, heartbeat: str = THREAD) -> AsyncIterator[Self]:
        """The heartbeat alone, for a block; on a loss the block is cancelled, and the loss raised at its end.

        `heartbeat` as in `Lease.keep`.
        """
        self.belief.beat_every(interval)
        beside, keeper = from_beside(heartbeat), self._client.blocking.keeper
        guard = BlockGuard(self.belief)
        guard.enter()
        keeper.add(self.belief)
        try:
            if beside:
                await self._client.hop(keeper.keep_beside, self.belief)
            yield self
        except BaseException as raised:
            keeper.remove(self.belief)
            if not guard.leave(raised):
                raise
        else:
            keeper.remove(self.belief)
            guard.leave(None)

    async def __aenter__(self) -> Self:
        self._guard.enter()
        self._client.blocking.keeper.add(self.belief)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._client.blocking.keeper.remove(self.belief)
        if self._guard.leave(raised):
            return True
        if self.belief.ended is not None or self.belief.is_lost:
            return False
        try:
            if raised is None:
                await self.release()
                warnings.warn(LEFT_OPEN.format(task_id=self.task_id), RuntimeWarning, stacklevel=2)
            elif isinstance(raised, Exception) and not is_store_away(raised):
                await self.fail(**LostInBlock.failure(raised))
            else:
                await asyncio.shield(self.release())
        except LeaseLost as lost:
            if lost.reason not in BY_ITS_HOLDER:  # ended through its handle, and no beat has noticed yet
                raise
        return False
