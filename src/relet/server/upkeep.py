"""What workers of a store see to between tasks, for those that have only the service: lapses and retention."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from relet.client.redacting import log_named
from relet.core import limits
from relet.core.errors import Error
from relet.core.rules.audit import AddAudit
from relet.core.rules.prune import Prune
from relet.core.rules.sweep import Sweep
from relet.server.arenas import give_back
from relet.server.service import Service

log = log_named("relet.server")

SWEEP_EVERY_S: Final = 2.0
PROVE_EVERY_S: Final = 5.0
PRUNE_EVERY_S: Final = 60.0


class Upkeep:
    """One task of the service's loop, until the service ends."""

    def __init__(self, service: Service, clock: Callable[[], float] = time.monotonic) -> None:
        self._service, self._clock = service, clock
        self._task: asyncio.Task[None] | None = None
        self.begun_at: float | None = None
        self.wrote_at: float | None = None
        """When the last write began that was committed, by the clock."""

    @property
    def unwritten_since(self) -> float | None:
        """When the last write began that was committed, or upkeep itself where none was yet; None before both."""
        return self.begun_at if self.wrote_at is None else self.wrote_at

    def begin(self) -> None:
        """From now on."""
        self.begun_at = self._clock()
        self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """After the batch that is under way."""
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        loop, stopping = asyncio.get_running_loop(), self._service.news.stopping
        prune_at, prove_at = loop.time() + PRUNE_EVERY_S, loop.time()
        while not stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), SWEEP_EVERY_S)
            try:
                await self._service.ask(self._service.backend.tenant, Sweep())
                if loop.time() >= prove_at:
                    prove_at = loop.time() + PROVE_EVERY_S
                    await self._prove()
                if loop.time() >= prune_at:
                    prune_at = loop.time() + PRUNE_EVERY_S
                    await self._service.in_thread(give_back)
                    await self._prune()
            except Error as away:
                log.info("upkeep was put off: %s", away)

    async def _prove(self) -> None:
        """A sweep that finds nothing writes nothing, and would not notice a full disk."""
        began = self._clock()
        await self._service.operate(AddAudit(acts=[]))
        self.wrote_at = began

    async def _prune(self) -> None:
        """Of all tenants, in small batches with others between them."""
        store: Any = self._service.backend
        after = ""
        while tenants := await self._service.in_thread(partial(store.tenants, after, limits.PAGE_ITEMS)):
            for tenant in tenants:
                await self._prune_tenant(tenant.name)
            after = tenants[-1].name

    async def _prune_tenant(self, tenant: str) -> None:
        cursor: int | None = 0
        while cursor is not None and not self._service.news.stopping.is_set():
            batch = await self._service.ask(tenant, Prune(after=cursor))
            cursor = batch.cursor
            if batch.ids:
                log.info(
                    "%d finished tasks of %s were past their retention, and were removed", len(batch.ids), tenant
                )
