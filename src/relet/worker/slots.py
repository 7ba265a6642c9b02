"""The slots of a worker: which lease runs where, in a thread or in a loop."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from relet.client.awaiting import AsyncClient
from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.client.durable.facts import RunFacts
from relet.client.durable.run import AsyncRun, Run
from relet.client.silence import Silence
from relet.worker.children import ApartRun, ChildProcess, Children
from relet.worker.execute import Outcome, outcome_of, run_awaiting, run_blocking
from relet.worker.sidecar import Sidecar
from relet.worker.warden import Warden

if TYPE_CHECKING:
    from relet.worker.app import Handler


LEAVE_WAIT_S: Final = 1.0


log = logging.getLogger("relet.worker")


class Slot:
    """One running attempt."""

    def __init__(self, lease: Lease, run: RunFacts, beside: bool = False) -> None:
        self.beside = beside
        """Its heartbeat is beside the worker, since it may hold the interpreter's lock."""
        grant = lease.belief.grant
        self.lease = lease
        self.run = run
        self.timeout_ms = grant.timeout_ms
        self.overdue = False
        limits_ms = [ms for ms in (grant.timeout_ms, grant.deadline_left_ms) if ms is not None]
        self.by_deadline = bool(limits_ms) and min(limits_ms) == grant.deadline_left_ms
        self.deadline = time.monotonic() + min(limits_ms) / 1_000 if limits_ms else float("inf")


class Slots:
    """All running attempts. `finished` is called from any thread, once for each."""

    def __init__(self, client: Client, finished: Callable[[Slot, Outcome], None]) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.sidecar: Sidecar | None = None
        self.children: Children | None = None
        self.warden: Warden | None = None
        self._client = client
        self._awaiting: AsyncClient | None = None
        self._own_loop: threading.Thread | None = None
        self._finished = finished
        self._running: dict[int, Slot] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False
        self._closing = False

    @property
    def busy(self) -> int:
        """How many are taken."""
        return len(self._running)

    def all(self) -> list[Slot]:
        """Those that are running."""
        return list(self._running.values())

    def start(self, handler: Handler, lease: Lease) -> None:
        """Run a handler under a lease, which is kept from this moment on."""
        ways = handler.ways
        if ways.max_silence_ms is not None:
            lease.belief.silence = Silence(self._client.clock, ways.max_silence_ms, self._client.keeper.poke)
        self._client.keeper.add(lease.belief)
        if ways.beside and not ways.apart and self.sidecar is not None:
            self.sidecar.keep(lease.belief)
        if ways.apart:
            assert self.children is not None, "made for the handlers that need it"
            child = self.children.take()
            apart = ApartRun(lease, child)
            slot = self._take(lease, apart, handler)
            given = (handler, slot, apart, child)
            threading.Thread(target=self._call_apart, args=given, name="relet-apart", daemon=True).start()
        elif handler.binding.is_async:
            loop = self._a_loop()
            assert self._awaiting is not None, "made with the loop"
            run = AsyncRun(lease, self._awaiting, loop)
            slot = self._take(lease, run, handler)
            loop.call_soon_threadsafe(self._begin, handler, slot, run)
        else:
            blocking = Run(lease)
            slot = self._take(lease, blocking, handler)
            name = f"relet-task-{lease.task_id}"
            # Daemons: a handler that never ends must not keep the process from ending.
            threading.Thread(target=self._call, args=(handler, slot, blocking), name=name, daemon=True).start()

    def free(self, slot: Slot) -> None:
        """The attempt is over, or given up."""
        self._running.pop(slot.lease.token, None)
        if self.sidecar is not None:
            self.sidecar.drop(slot.lease.belief)
        self._client.keeper.remove(slot.lease.belief)

    def tell_draining(self) -> None:
        """Let every run know that the worker is about to end."""
        self._draining = True
        for slot in self.all():
            slot.run.draining = True

    def close(self) -> None:
        """End the loop, if it is ours; handlers that were cancelled have a moment to leave it."""
        self._closing = True
        if self.sidecar is not None:
            self.sidecar.close()
        if self.children is not None:
            self.children.close()
        if self.warden is not None:
            self.warden.close()
        if self._own_loop is not None and self.loop is not None:
            asyncio.run_coroutine_threadsafe(self._leave(self.loop), self.loop)
            self._own_loop.join(timeout=2 * LEAVE_WAIT_S)

    async def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LEAVE_WAIT_S)
        loop.stop()

    def _take(self, lease: Lease, run: RunFacts, handler: Handler) -> Slot:
        slot = Slot(lease, run, handler.ways.beside and not handler.ways.apart)
        run.draining = self._draining
        self._running[lease.token] = slot
        return slot

    def _call(self, handler: Handler, slot: Slot, run: Run) -> None:
        self._finished(slot, run_blocking(handler, run))

    def _call_apart(self, handler: Handler, slot: Slot, run: ApartRun, child: ChildProcess) -> None:
        assert self.children is not None, "made for the handlers that need it"
        try:
            outcome = child.run(handler, run)
        except BaseException as raised:  # noqa: BLE001 - a fault between the two is an outcome, and not a hung slot
            child.spent = True
            outcome = outcome_of(run, raised)
        self.children.give_back(child)
        self._finished(slot, outcome)

    def _begin(self, handler: Handler, slot: Slot, run: AsyncRun) -> None:
        task = asyncio.ensure_future(self._await(handler, slot, run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await(self, handler: Handler, slot: Slot, run: AsyncRun) -> None:
        try:
            outcome = await run_awaiting(handler, run)
        except GeneratorExit as raised:
            # Of a task within the handler; it passes by everything that the handler is awaited in.
            outcome = outcome_of(run, raised)
        self._finished(slot, outcome)

    def _a_loop(self) -> asyncio.AbstractEventLoop:
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            self._own_loop = threading.Thread(target=self._spin, args=(self.loop,), name="relet-loop", daemon=True)
            self._own_loop.start()
        if self._awaiting is None:
            self._awaiting = AsyncClient(self._client)
        return self.loop

    def _spin(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not self._closing:
            try:
                loop.run_forever()
            except BaseException:
                log.exception("a task ended the worker's event loop; it goes on")
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
