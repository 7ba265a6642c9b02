"""A Run: what a handler works with; every call first asks whether the lease may still be trusted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import msgspec

from relet.client.awaiting import AsyncClient
from relet.client.blocking_lease import Lease
from relet.core.errors import Error, LeaseLost, LeaseStopped

_CURRENT: ContextVar[Run | AsyncRun | None] = ContextVar("relet_run", default=None)


def current_run() -> Run | AsyncRun | None:
    """The run that this code works for; None outside of a handler. Carried into `asyncio.to_thread`."""
    return _CURRENT.get()


def enter(run: Run | AsyncRun) -> None:
    """Make it the current run of this thread or task."""
    _CURRENT.set(run)


class RunTask(msgspec.Struct, frozen=True, kw_only=True):
    """The task of a run, as it was granted."""

    id: str
    queue: str
    kind: str
    input: Any
    labels: dict[str, str]
    attempt: int


class RunFacts:
    """What blocking and awaiting runs share: the lease, and why they must stop."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.stopped: Error | None = None
        """Why the run must stop: the lease is lost, the task cancelled, the time over. None while it may go on."""
        self.draining = False
        """Set once the worker is asked to end: save what you have and return, or release the lease."""
        self._lock = threading.Lock()
        lease.belief.on_lost.append(self.stop)
        if lease.belief.cause is not None:
            self.stop(lease.belief.cause)  # lost before anybody could be told

    @property
    def task(self) -> RunTask:
        """The task, as it was granted."""
        lease = self.lease
        return RunTask(
            id=lease.task_id, queue=lease.queue, kind=lease.kind, input=lease.input, labels=lease.labels,
            attempt=lease.attempt,
        )  # fmt: skip

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self.lease.task_id

    @property
    def token(self) -> int:
        """The fencing token, for whatever is written elsewhere."""
        return self.lease.token

    @property
    def attempt(self) -> int:
        """1 + failures + losses so far."""
        return self.lease.attempt

    @property
    def holder(self) -> str:
        """The worker's label."""
        return self.lease.holder

    def stop(self, cause: Error) -> None:
        """No relet call of this run goes on from here; the first cause stands."""
        with self._lock:
            if self.stopped is not None:
                return
            self.stopped = cause
        self._deliver()

    def _deliver(self) -> None:
        """Tell code that is busy elsewhere; a blocking run hears it at its next relet call."""

    def _must_stop(self) -> Error | None:
        """Why nothing may be sent any more; looks at this machine's own clock, too."""
        self.lease.belief.lose_by_clock()
        return self.stopped

    def _require(self, need: Any) -> None:
        try:
            self.lease.belief.require(need)
        except LeaseLost as lost:
            if self.lease.status == "lost":
                self.stop(lost)
            raise


class Run(RunFacts):
    """For `def` handlers. Once it must stop, each call raises `LeaseStopped`."""

    def check(self, need: Any = 0) -> None:
        """Raise unless the lease is trusted for `need` more seconds."""
        self._go_on()
        self._ask(lambda: self._require(need))
        self._ask(lambda: self.lease.check(need))

    def save(self, value: Any, name: str = "main") -> int:
        """Keep a JSON value for the next holder."""
        self._go_on()
        return int(self._ask(lambda: self.lease.save(value, name)))

    def load(self, name: str = "main") -> Any:
        """What any holder of the task saved last under the name; None when nothing was."""
        self._go_on()
        return self._ask(lambda: self.lease.load(name))

    def _go_on(self) -> None:
        if (cause := self._must_stop()) is not None:
            raise LeaseStopped(cause)

    def _ask(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except LeaseLost as lost:
            if self.stopped is None and self.lease.status != "lost":
                raise
            raise LeaseStopped(self.stopped or lost) from lost


class AsyncRun(RunFacts):
    """For `async def` handlers. Once it must stop its task is cancelled, with the cause in `stopped`."""

    def __init__(self, lease: Lease, client: AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        super().__init__(lease)

    def bind(self, task: asyncio.Task[Any]) -> None:
        """The task to cancel; at once, when the run was stopped before it began."""
        with self._lock:
            self._task = task
        if self.stopped is not None:
            task.cancel()

    async def check(self, need: Any = 0) -> None:
        """Raise unless the lease is trusted for `need` more seconds."""
        self._go_on()
        self._require(need)
        if self.lease.belief.is_doubtful():
            await self._client.hop(self.lease.check, need)

    async def save(self, value: Any, name: str = "main") -> int:
        """Keep a JSON value for the next holder."""
        self._go_on()
        return int(await self._client.hop(self.lease.save, value, name))

    async def load(self, name: str = "main") -> Any:
        """What any holder of the task saved last under the name; None when nothing was."""
        self._go_on()
        return await self._client.hop(self.lease.load, name)

    def _go_on(self) -> None:
        if (cause := self._must_stop()) is not None:
            raise cause

    def _deliver(self) -> None:
        task = self._task
        if task is None:
            return
        try:
            self._loop.call_soon_threadsafe(task.cancel)
        except RuntimeError:
            return  # the loop has ended, and with it the work
