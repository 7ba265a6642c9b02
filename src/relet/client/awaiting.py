"""The awaiting client: the same verbs as the blocking one, awaited. A whole transaction is one hop to a thread."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Self

import msgspec

from relet.client import asks
from relet.client.awaiting_lease import AsyncLease
from relet.client.awaiting_upkeep import AsyncUpkeepVerbs
from relet.client.awaiting_work import AsyncWorkVerbs
from relet.client.blocking import POLL_S, Client
from relet.client.blocking_lease import Lease
from relet.client.views import Bulk, result_of
from relet.core.advice import Advice
from relet.core.errors import Error
from relet.core.model import Event, Rejection, Task
from relet.core.rules.claim import Claim
from relet.core.rules.finish import Ended
from relet.core.rules.inspect import Stats
from relet.core.rules.queues import QueueState
from relet.core.tx import QueueRow

THREADS = 32
"""Those that wait for each other share a commit, so many at once are cheaper than few; each is made when needed."""


class AsyncClient(AsyncWorkVerbs, AsyncUpkeepVerbs):
    """A store, asked by awaited calls; every verb of `Client`, under the same name and with the same arguments."""

    def __init__(self, client: Client) -> None:
        self.blocking = client
        self._pid = 0
        self._change: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop keeping leases and let go of the store."""
        await self.hop(self.blocking.close)
        self.threads.shutdown(wait=False)
        self._pid = 0  # whoever asks once more hears from the store that it is closed

    @property
    def place(self) -> str:
        """Where the store is, in full."""
        return self.blocking.place

    @property
    def threads(self) -> ThreadPoolExecutor:
        """Threads for blocking calls; others in a forked child, since threads do not survive a fork."""
        if self._pid != os.getpid():
            self._pid, self._threads = os.getpid(), ThreadPoolExecutor(THREADS, thread_name_prefix="relet-async")
        return self._threads

    async def hop(self, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Run a blocking call on a thread of this client."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, lambda: call(*args, **named))

    # -- tasks ---------------------------------------------------------------------------------------------------

    async def submit(
        self, queue: str, input: Any = None, *, id: str | None = None, tx: Any = None, **options: Any
    ) -> Task:
        """As `Client.submit`."""
        task: Task = await self.hop(self.blocking.submit, queue, input, id=id, tx=tx, **options)
        return task

    async def submit_many(
        self, queue: str, inputs: Sequence[Any], ids: Sequence[str | None] | None = None, *, tx: Any = None,
        **options: Any,
    ) -> list[Task]:  # fmt: skip
        """As `Client.submit_many`."""
        tasks: list[Task] = await self.hop(self.blocking.submit_many, queue, inputs, ids, tx=tx, **options)
        return tasks

    async def task(self, id: str) -> Task:
        """As `Client.task`."""
        task: Task = await self.hop(self.blocking.task, id)
        return task

    async def tasks(
        self, queue: str | None = None, state: str | None = None, labels: dict[str, str] | None = None, *,
        kind: str | None = None, limit: int = 100, after: str | None = None,
    ) -> list[Task]:  # fmt: skip
        """As `Client.tasks`."""
        page: list[Task] = await self.hop(
            self.blocking.tasks, queue, state, labels, kind=kind, limit=limit, after=after
        )
        return page

    async def result(self, id: str, wait: Any = 0, returns: Any = None) -> Any:
        """As `Client.result`; waiting takes no thread."""
        until = time.monotonic() + asks.wait_s(wait)
        whole = self.blocking.files.whole
        while (found := result_of(await self.task(id), returns, whole)) is None:
            if time.monotonic() >= until:
                raise TimeoutError(f"task {id} is not finished")
            await self._pause(until)
        return found.value

    async def history(self, id: str) -> list[Event]:
        """As `Client.history`."""
        events: list[Event] = await self.hop(self.blocking.history, id)
        return events

    async def watch(
        self, queue: str | None = None, task_id: str | None = None, after: int | None = None
    ) -> AsyncIterator[Event]:
        """As `Client.watch`, for `async for`."""
        ask = asks.changes(after, queue, task_id)
        while True:
            page = await self.hop(self.blocking.backend.call, ask)
            for event in page.events:
                yield event
            if not page.events:
                await self._pause(time.monotonic() + POLL_S)
            ask = msgspec.structs.replace(ask, after=page.cursor)

    async def cancel(self, id: str, reason: str = "") -> Task:
        """As `Client.cancel`."""
        task: Task = await self.hop(self.blocking.cancel, id, reason)
        return task

    async def requeue(self, id: str) -> Task:
        """As `Client.requeue`."""
        task: Task = await self.hop(self.blocking.requeue, id)
        return task

    async def cancel_many(
        self, filter: dict[str, Any] | None = None, *, reason: str = "", dry_run: bool = False, **conditions: Any
    ) -> Bulk:  # fmt: skip
        """As `Client.cancel_many`."""
        bulk: Bulk = await self.hop(self.blocking.cancel_many, filter, reason=reason, dry_run=dry_run, **conditions)
        return bulk

    async def requeue_many(
        self, filter: dict[str, Any] | None = None, *, dry_run: bool = False, **conditions: Any
    ) -> Bulk:
        """As `Client.requeue_many`."""
        bulk: Bulk = await self.hop(self.blocking.requeue_many, filter, dry_run=dry_run, **conditions)
        return bulk

    # -- leases --------------------------------------------------------------------------------------------------

    async def claim(
        self, queue: str | Sequence[str] | None = None, *, holder: str | None = None, ttl: Any = None,
        kinds: Sequence[str] | None = None, wait: Any = 0, request_id: str | None = None, task_id: str | None = None,
        handle: Any = None,
    ) -> AsyncLease | None:  # fmt: skip
        """As `Client.claim`."""
        ask = asks.claim(
            queue, self.blocking.holder_of(holder), ttl=ttl, kinds=kinds, request_id=request_id, task=task_id,
            handle=handle,
        )  # fmt: skip
        leases = await self._claim(ask, wait)
        return leases[0] if leases else None

    async def claim_many(
        self, queue: str | Sequence[str], n: int, *, holder: str | None = None, ttl: Any = None,
        kinds: Sequence[str] | None = None, wait: Any = 0, request_id: str | None = None,
    ) -> list[AsyncLease]:  # fmt: skip
        """As `Client.claim_many`."""
        holder = self.blocking.holder_of(holder)
        return await self._claim(asks.claim(queue, holder, n=n, ttl=ttl, kinds=kinds, request_id=request_id), wait)

    async def _claim(self, ask: Claim, wait: Any) -> list[AsyncLease]:
        until = time.monotonic() + asks.wait_s(wait)
        while True:
            leases = await self._claim_once(ask)
            if leases or time.monotonic() >= until:
                return [AsyncLease(self, lease) for lease in leases]
            await self._pause(until)

    async def _claim_once(self, ask: Claim) -> list[Lease]:
        return await self.granted(lambda: self.blocking.claim_once(ask), ask.request_id)

    async def granted(self, call: Callable[[], list[Lease]], request_id: str | None) -> list[Lease]:
        """Leases that a call is granted; when it is cancelled on the way, they are given back.

        Never under a request id of the caller's: whoever repeats it gets these very leases.
        """
        if request_id is not None:
            kept: list[Lease] = await self.hop(call)
            return kept
        loop = asyncio.get_running_loop()
        leases = loop.run_in_executor(self.threads, call)
        try:
            return await asyncio.shield(leases)
        except asyncio.CancelledError:
            leases.add_done_callback(self._give_back)
            raise

    def _give_back(self, granted: asyncio.Future[list[Lease]]) -> None:
        if granted.cancelled() or granted.exception() is not None:
            return
        for lease in granted.result():
            # A thread of its own: those of the client may have been shut down meanwhile.
            threading.Thread(target=_release, args=(lease,), daemon=True).start()

    async def lease(self, handle: Any) -> AsyncLease:
        """As `Client.lease`."""
        return AsyncLease(self, await self.hop(self.blocking.lease, handle))

    async def renew_many(self, leases: Sequence[AsyncLease]) -> list[float | Error]:
        """As `Client.renew_many`."""
        answers: list[float | Error] = await self.hop(self.blocking.renew_many, leases)
        return answers

    async def complete_many(self, pairs: Sequence[tuple[AsyncLease, Any]]) -> list[Ended | Error]:
        """As `Client.complete_many`."""
        outcomes: list[Ended | Error] = await self.hop(self.blocking.complete_many, pairs)
        return outcomes

    # -- operators -----------------------------------------------------------------------------------------------

    async def sweep(self) -> int:
        """As `Client.sweep`."""
        return int(await self.hop(self.blocking.sweep))

    async def stats(self, queue: str | None = None) -> Stats:
        """As `Client.stats`."""
        stats: Stats = await self.hop(self.blocking.stats, queue)
        return stats

    async def advise(self, queue: str | None = None) -> list[Advice]:
        """As `Client.advise`."""
        advice: list[Advice] = await self.hop(self.blocking.advise, queue)
        return advice

    async def rejections(
        self, task_id: str | None = None, limit: int = 100, before: int | None = None
    ) -> list[Rejection]:
        """As `Client.rejections`."""
        feed: list[Rejection] = await self.hop(self.blocking.rejections, task_id, limit, before)
        return feed

    async def queue(
        self, name: str, *, paused: bool | None = None, ttl: Any = None, timeout: Any = None, max_hold: Any = None,
        max_attempts: int | None = None, max_losses: int | None = None, concurrency: Any = None,
        share_concurrency: Any = None, rate: Any = None, retention: Any = None,
    ) -> QueueRow:  # fmt: skip
        """As `Client.queue`."""
        row: QueueRow = await self.hop(
            self.blocking.queue, name, paused=paused, ttl=ttl, timeout=timeout, max_hold=max_hold,
            max_attempts=max_attempts, max_losses=max_losses, concurrency=concurrency,
            share_concurrency=share_concurrency, rate=rate, retention=retention,
        )  # fmt: skip
        return row

    async def queues(self, name: str | None = None, share: str | None = None) -> list[QueueState]:
        """As `Client.queues`."""
        found: list[QueueState] = await self.hop(self.blocking.queues, name, share)
        return found

    async def _pause(self, until: float) -> None:
        """Wait for a change, at the latest until then; one thread waits for all who do."""
        loop = asyncio.get_running_loop()
        if self._change is None or self._change.done() or self._change.get_loop() is not loop:
            self._change = loop.run_in_executor(self.threads, self.blocking.backend.wait_for_change, POLL_S)
        left_s = max(0.0, min(2 * POLL_S, until - time.monotonic()))
        done, _ = await asyncio.wait({self._change}, timeout=left_s)
        for change in done:
            change.result()


def _release(lease: Lease) -> None:
    with suppress(Error):  # else it lapses
        lease.release()
