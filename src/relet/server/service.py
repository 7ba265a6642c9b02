"""The store behind the service: asked in threads, by so many at once, each bound to the tenant of its credential."""

from __future__ import annotations

import asyncio
import copy
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from relet.core.backend import Backend
from relet.core.errors import Unavailable
from relet.core.operation import Operation, operation_of
from relet.core.rules.renew import RENEW
from relet.core.rules.sweep import Swept
from relet.server.news import News
from relet.server.renewals import Renewals

if TYPE_CHECKING:
    from collections.abc import Callable

    from relet.artifacts.place import ArtifactStore

THREADS: Final = 48
"""What may wait, for a lock of the store or for a disk: they share transactions, and others wait for their turn."""
QUICK_THREADS: Final = 16
"""Reads, heartbeats and look-ups of keys, which no crowd that waits for a lock is in the way of."""
QUICK_S: Final = 0.05
"""A look for one key takes a thousandth of that, and the loop may do it itself until one takes longer."""
CALLS_SIDE_BY_SIDE: Final = 4
NOTHING: Final[tuple[Any, ...]] = ([], Swept(lapsed=0, overdue=0, unanswered=0, more=False))
"""Answers of operations that write, where there was nothing to write."""
PATIENCE_MS_MAX: Final = 5_000
KNOWN_MAX: Final = 100_000


class Service:
    """One store, and what is beside it: bytes, and news."""

    def __init__(self, backend: Backend, place: Callable[[], ArtifactStore]) -> None:
        self.backend = backend
        self._opening = place
        self._place: ArtifactStore | None = None
        self.news = News(backend)
        self.told: list[Callable[[str, Any, Any, float], None]] = []
        """Who hears of each answer: the tenant, what was asked, what was answered, and when it was asked."""
        self.queues: OrderedDict[tuple[str, str], str] = OrderedDict()
        """Of tenants and ids of tasks: the queue, which never changes; the ones that were asked for last."""
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="relet-serve")
        self._quick = ThreadPoolExecutor(QUICK_THREADS, thread_name_prefix="relet-serve-quick")
        self._bound: dict[str, Backend] = {}
        self._renewals = Renewals(self._call, self.side_by_side)
        self._looks_quickly = False
        self.has_ended = False

    @property
    def side_by_side(self) -> int:
        """How many calls of one kind are worth being under way at one time."""
        return CALLS_SIDE_BY_SIDE if self.backend.answers_side_by_side else 1

    @property
    def place(self) -> ArtifactStore:
        """Where its artifacts are."""
        if self._place is None:
            self._place = self._opening()
        return self._place

    def of(self, tenant: str) -> Backend:
        """The same store, bound to a tenant."""
        if (found := self._bound.get(tenant)) is None:
            other: Any = copy.copy(self.backend)
            other.tenant = tenant
            found = self._bound[tenant] = other
        return found

    async def ask(self, tenant: str, ask: Any, patience_ms: int | None = None) -> Any:
        """The answer to a request, errors raised."""
        operation: Operation = operation_of(type(ask))
        patience_ms = PATIENCE_MS_MAX if patience_ms is None else min(patience_ms, PATIENCE_MS_MAX)
        asked_at = time.monotonic()
        answering = self._renewals.answer if operation is RENEW else self._call
        answer = await answering(tenant, ask, patience_ms)
        for tell in self.told:
            tell(tenant, ask, answer, asked_at)
        # Neither a heartbeat is, nor what found nothing: a claim that waits would wake itself for ever. What such a
        # one has closed on its way, the watch of the store sees.
        if _waits(operation) and answer not in NOTHING:
            self.news.tell()
        return answer

    async def _call(self, tenant: str, ask: Any, patience_ms: int) -> Any:
        """The wait for a thread is part of the patience."""
        backend, until = self.of(tenant), time.monotonic() + patience_ms / 1_000

        def call() -> Any:
            left_ms = int(1_000 * (until - time.monotonic()))
            return backend.call(ask, patience_ms=max(1, left_ms))

        return await self.in_thread(call, waits=_waits(operation_of(type(ask))))

    async def operate(self, ask: Any) -> Any:
        """The answer to a request that is of the store, and of no tenant."""
        store: Any = self.backend
        return await self.in_thread(lambda: store.operate(ask), waits=_waits(operation_of(type(ask))))

    async def look(self, ask: Any) -> Any:
        """As `operate` for what only reads; in the loop itself where the last one was quick.

        A way to a thread and back costs more than such a look. But nobody can forbid SQLite to sleep, for up to ten
        seconds, where a process was stopped with the locks of readers in its hands.
        """
        store: Any = self.backend
        if self._looks_quickly and (found := self._look(lambda: store.operate_at_once(ask))) is not None:
            return found
        return await self.in_thread(lambda: self._look(lambda: store.operate(ask)))

    def _look(self, look: Callable[[], Any]) -> Any:
        began = time.monotonic()
        try:
            return look()
        finally:
            self._looks_quickly = time.monotonic() - began < QUICK_S

    async def in_thread(self, call: Callable[[], Any], *, waits: bool = False) -> Any:
        """What a call that blocks answers; `waits`: for long maybe, for a lock or a disk."""
        if self.has_ended:
            raise Unavailable("the service has ended; nothing was done, ask it again once it runs")
        return await asyncio.get_running_loop().run_in_executor(self._threads if waits else self._quick, call)

    def close(self) -> None:
        """No more threads; the store is closed by whoever opened it."""
        self.has_ended = True
        for threads in (self._threads, self._quick):
            threads.shutdown(wait=False, cancel_futures=True)


def _waits(operation: Operation) -> bool:
    """Does it wait with all that is made durable; a heartbeat has a lane of its own."""
    return operation.writes and operation.durable
