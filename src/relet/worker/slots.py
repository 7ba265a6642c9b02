"""The slots of a worker: which lease runs where, in a thread or in a loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from relet.client.awaiting import AsyncClient
from relet.client.beside.sidecar import Sidecar
from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.client.durable.facts import RunFacts
from relet.client.durable.run import AsyncRun, Run
from relet.client.redacting import log_named
from relet.client.silence import Silence
from relet.worker.children import ApartRun, ChildProcess, Children
from relet.worker.execute import Outcome, outcome_of, run_awaiting, run_blocking
from relet.worker.warden import Warden

if TYPE_CHECKING:
    from relet.worker.app import Handler

log = log_named("relet.worker")

LEAVE_WAIT_S: Final = 1.0


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
        self.is_end_said = False
        """Was it logged how it ended: what cannot be told to the store is tried again many times a second."""
        self.by_deadline, self.deadline = False, float("inf")
        if grant.timeout_ms is not None or grant.deadline_left_ms is not None:
            limits_ms = [ms for ms in (grant.timeout_ms, grant.deadline_left_ms) if ms is not None]
            self.by_deadline = min(limits_ms) == grant.deadline_left_ms
            self.deadline = time.monotonic() + min(limits_ms) / 1_000


Ended = tuple[Slot, Outcome]
"""An attempt that is over, and how."""


class Slots:
    """All running attempts. `finished` is called from any thread with those that are over, once for each."""

    def __init__(self, client: Client, finished: Callable[[list[Ended]], None]) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.sidecar: Sidecar | None = None
        self.children: Children | None = None
        self.warden: Warden | None = None
        self._client = client
        self._awaiting: AsyncClient | None = None
        self._own_loop: threading.Thread | None = None
        self._finished = finished
        self._running: dict[int, Slot] = {}
        self._tasks: set[asyncio.Task[None] | None] = set()
        self._ended: list[Ended] = []
        self._draining = False
        self._closing = False

    @property
    def busy(self) -> int:
        """How many are taken."""
        return len(self._running)

    def all(self) -> list[Slot]:
        """Those that are running."""
        return list(self._running.values())

    def start(self, begun: list[tuple[Handler, Lease]]) -> list[tuple[Lease, Exception]]:
        """Run handlers under their leases, which are kept from this moment on; those that could not be begun.

        Those are kept no longer: where no thread or process is to be had, nobody works under them.
        """
        for handler, lease in begun:
            if (ms := handler.ways.max_silence_ms) is not None:
                lease.belief.silence = Silence(
                    self._client.clock, ms, self._client.keeper.poke, elsewhere=handler.ways.apart
                )
        self._client.keeper.add_all([lease.belief for _, lease in begun])
        awaiting: list[tuple[Handler, Slot]] = []
        failed: list[tuple[Lease, Exception]] = []
        for handler, lease in begun:
            try:
                self._start_one(handler, lease, awaiting)
            except Exception as wrong:  # noqa: BLE001 - whatever one meets, the others are to run
                failed.append((lease, wrong))
                self._forget(lease)
        if awaiting:
            # Once for all of them: waking the loop costs more than what it then does for one.
            self._a_loop().call_soon_threadsafe(self._begin, awaiting)
        return failed

    def _start_one(self, handler: Handler, lease: Lease, awaiting: list[tuple[Handler, Slot]]) -> None:
        ways = handler.ways
        if ways.beside and not ways.apart and self.sidecar is not None:
            self.sidecar.keep(lease.belief)
        if ways.apart:
            self._start_apart(handler, lease)
        elif handler.binding.is_async:
            awaiting.append((handler, self._take(lease, self._async_run(lease), handler)))
        else:
            slot = self._take(lease, Run(lease), handler)
            name = f"relet-task-{lease.task_id}"
            # Daemons: a handler that never ends must not keep the process from ending.
            threading.Thread(target=self._call, args=(handler, slot), name=name, daemon=True).start()

    def _start_apart(self, handler: Handler, lease: Lease) -> None:
        assert self.children is not None, "made for the handlers that need it"
        child = self.children.take()
        try:
            run = ApartRun(lease, child)
            given = (handler, self._take(lease, run, handler), run, child)
            threading.Thread(target=self._call_apart, args=given, name="relet-apart", daemon=True).start()
        except BaseException:
            child.lay_down(lease)
            self.children.give_back(child)
            raise

    def end(self, ended: list[Ended]) -> None:
        """The handlers are done; their leases are kept until that is told, and by the thread again."""
        for slot, _ in ended:
            self._running.pop(slot.lease.token, None)
            if self.sidecar is not None:
                self.sidecar.drop(slot.lease.belief)

    def free(self, slot: Slot) -> None:
        """The attempt is given up, and its lease kept no longer."""
        self._forget(slot.lease)

    def _forget(self, lease: Lease) -> None:
        self._running.pop(lease.token, None)
        if self.sidecar is not None:
            self.sidecar.drop(lease.belief)
        self._client.keeper.remove(lease.belief)

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
            await asyncio.wait({task for task in self._tasks if task is not None}, timeout=LEAVE_WAIT_S)
        loop.stop()

    def _take(self, lease: Lease, run: RunFacts, handler: Handler) -> Slot:
        slot = Slot(lease, run, handler.ways.beside and not handler.ways.apart)
        run.draining = self._draining
        self._running[lease.token] = slot
        return slot

    def _call(self, handler: Handler, slot: Slot) -> None:
        assert isinstance(slot.run, Run), "a `def` handler has a blocking run"
        self._finished([(slot, run_blocking(handler, slot.run))])

    def _async_run(self, lease: Lease) -> AsyncRun:
        loop = self._a_loop()
        assert self._awaiting is not None, "made with the loop"
        return AsyncRun(lease, self._awaiting, loop)

    def _call_apart(self, handler: Handler, slot: Slot, run: ApartRun, child: ChildProcess) -> None:
        assert self.children is not None, "made for the handlers that need it"
        try:
            outcome = child.run(handler, run)
        except BaseException as raised:  # noqa: BLE001 - a fault between the two is an outcome, and not a hung slot
            child.spent = True
            outcome = outcome_of(run, raised)
        self.children.give_back(child)
        self._finished([(slot, outcome)])

    def _begin(self, begun: list[tuple[Handler, Slot]]) -> None:
        create_task = asyncio.get_running_loop().create_task
        self._tasks.update([create_task(self._await(handler, slot)) for handler, slot in begun])

    async def _await(self, handler: Handler, slot: Slot) -> None:
        run, task = slot.run, asyncio.current_task()
        assert isinstance(run, AsyncRun) and task is not None, (
            "an `async def` handler has an awaiting run, and a task"
        )
        try:
            outcome = await run_awaiting(handler, run, task)
        except GeneratorExit as raised:
            # Of a task within the handler; it passes by everything that the handler is awaited in.
            outcome = outcome_of(run, raised)
        self._tasks.discard(task)
        self._ended.append((slot, outcome))
        if len(self._ended) == 1:
            # In the loop's next turn, with all that end in this one.
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        ended, self._ended = self._ended, []
        self._finished(ended)

    def _a_loop(self) -> asyncio.AbstractEventLoop:
        if self.loop is None:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=self._spin, args=(loop,), name="relet-loop", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                loop.close()
                raise
            self.loop, self._own_loop = loop, thread
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
