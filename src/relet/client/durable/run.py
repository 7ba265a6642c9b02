"""A Run: what a handler works with; every call first asks whether the lease may still be trusted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from relet.client.awaiting import AsyncClient
from relet.client.awaiting_lease import AsyncLease
from relet.client.blocking_lease import Lease
from relet.client.durable.book import Book
from relet.client.durable.effects import Effects
from relet.client.durable.facts import RunFacts, beside, current_run, enter, entered
from relet.client.durable.hands import AwaitingHands, BlockingHands, Hands
from relet.client.durable.retry import RetryPolicy
from relet.client.durable.steps import Steps, spend
from relet.client.durable.unawaited import Calls, noted
from relet.client.durable.waits import Waits
from relet.core.drive import drive
from relet.core.errors import LeaseLost, LeaseStopped, Parked
from relet.core.model import Task
from relet.core.work import Artifact, Decision, Saving

if TYPE_CHECKING:
    from relet.client.durable.contracts import Declared


class _Parts:
    """What a run is composed of: its memo, steps, waits and effects."""

    def __init__(self, run: RunFacts, hands: Hands) -> None:
        self.book = Book(run, hands)
        self.steps = Steps(run, hands, self.book)
        self.waits = Waits(run, hands, self.book)
        self.effects = Effects(run, hands, self.waits)


class _Composed(RunFacts):
    """A run with its memo, steps, waits and effects, which are made when the first of them is asked for."""

    _made: _Parts | None = None

    @property
    def _hands(self) -> Hands:
        """How it asks its store, and calls its functions."""
        raise NotImplementedError

    @property
    def _parts(self) -> _Parts:
        return self._made or self._make()

    def _make(self) -> _Parts:
        with self._lock:  # a handler may have threads, and all of them share one memo
            if self._made is None:
                self._made = _Parts(self, self._hands)
            return self._made

    @property
    def skipped(self) -> Saving:
        """The steps that this run has not called again so far, and what they took when they were."""
        return self._parts.book.skipped

    async def _checked(self, need: Any) -> None:
        self._hands.go_on()
        try:
            self.require(need)
        except LeaseLost as lost:
            raise self._hands.unwinding(lost) from lost
        if self.lease.belief.is_doubtful():
            await self._hands.send(self.lease.check, need)

    def spent(self, cost: float) -> None:
        """Add to the cost of the step that this code runs in, in any one unit; shown as saved when it is skipped."""
        spend(cost)


class Run(_Composed):
    """For `def` handlers. Once it must stop, each call raises `LeaseStopped`; once it is parked, `Parked`."""

    @property
    def _hands(self) -> BlockingHands:
        return BlockingHands(self)

    def check(self, need: Any = 0) -> None:
        """Raise unless the lease is trusted for `need` more seconds."""
        drive(self._checked(need))

    def save(self, value: Any, name: str = "main") -> int:
        """Keep a JSON value for the next holder."""
        return int(self._do(self.lease.save, value, name))

    def load(self, name: str = "main") -> Any:
        """What any holder of the task saved last under the name; None when nothing was."""
        return self._do(self.lease.load, name)

    def attach(self, name: str, source: bytes | str | os.PathLike[str]) -> Artifact:
        """Keep bytes, or those of the file at a path, by name."""
        artifact: Artifact = self._do(self.lease.attach, name, source)
        return artifact

    def open(self, name: str) -> BinaryIO:
        """What any holder attached last under the name, as a binary file. Raises `NotFound`."""
        found: BinaryIO = self._do(self.lease.open, name)
        return found

    def progress(self, note: str) -> None:
        """A note of where the work stands, for whoever looks."""
        self._do(self.lease.progress, note)

    def step(
        self, name: str, fn: Callable[..., Any], *args: Any, key: str | None = None, timeout: Any = None,
        retry: RetryPolicy | None = None, returns: Any = None,
    ) -> Any:  # fmt: skip
        """`fn(*args)`, once: a later holder gets the kept result.

        Calls of one name number themselves; `key` tells them apart by what they are for. `retry` tries again here,
        under the lease; `timeout` bounds each try. Raises `Conflict` when the slot was kept for other arguments.
        """
        return drive(self._parts.steps.step(name, fn, args, key, timeout, retry, returns))

    def effect(
        self, name: str, payload: Any, fn: Callable[..., Any], *, key: str | None = None,
        contract: Declared | None = None, timeout: Any = None, returns: Any = None,
    ) -> Any:  # fmt: skip
        """`fn(payload, effect)`, recorded before it is called; its result is the receipt.

        Unique per task by name, or per tenant by `key`. An unknown outcome is repeated only where the contract
        allows it, looked up where it has a `check`, and otherwise waits for `relet reconcile`. `fn` is called in
        this very thread; where `timeout` is given, in one of its own, which is left when it takes longer (five
        minutes are on record by default). Raises `NotApplied` when it certainly was not done, `OutcomeUnknown`
        (RELET-EFFECT-UNKNOWN) when only a repeated try was not.
        """
        return drive(self._parts.effects.effect(name, payload, fn, key, contract, timeout, returns))

    def approval(self, name: str, ask: Any = None, *, timeout: Any = None, default: Any = None) -> Decision:
        """A person's decision on `ask`; until it is there the task waits without a lease."""
        return drive(self._parts.waits.approval(name, ask, timeout, default))

    def receive(self, name: str, *, timeout: Any = None, default: Any = None) -> Any:
        """The payload of the next signal of this name. Raises TimeoutError when none came and there is no default."""
        return drive(self._parts.waits.receive(name, timeout, default))

    def sleep(self, duration: Any, *, name: str | None = None) -> None:
        """Go on in `duration`, without a lease until then."""
        drive(self._parts.waits.sleep(duration, name))

    def submit(self, name: str, queue: str, input: Any = None, **options: Any) -> Task:
        """Submit a child task, once however often this runs: its id is made of this task's and `name`."""
        task: Task = self._do(self.lease.submit, name, queue, input, options)
        return task

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A transaction of your own on the store's database, committed only if the lease still holds at its end."""
        self._hands.go_on()
        try:
            with self.lease.transaction() as connection:
                yield connection
        except LeaseLost as lost:
            raise self._hands.unwinding(lost) from lost

    def _do(self, call: Callable[..., Any], *args: Any) -> Any:
        self._hands.go_on()
        return drive(self._hands.send(call, *args))


class AsyncRun(_Composed):
    """For `async def` handlers. Once it must stop its task is cancelled, with the cause in `stopped`."""

    def __init__(self, lease: Lease, client: AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        self.calls: Calls | None = None
        """The verbs that the handler has called, if any, so that one it never awaits is not overlooked."""
        super().__init__(lease)

    @property
    def _hands(self) -> AwaitingHands:
        # Made when asked for, and not kept: most runs need none, and what they are in a circle with stays for longer.
        return AwaitingHands(self, self._client)

    def leave(self) -> None:
        super().leave()
        self._task = None

    def bind(self, task: asyncio.Task[Any]) -> None:
        """The task to cancel; at once, when the run was stopped before it began."""
        with self._lock:
            self._task = task
        if self.stopped is not None:
            task.cancel()

    @noted
    async def check(self, need: Any = 0) -> None:
        """As `Run.check`."""
        await self._checked(need)

    @noted
    async def save(self, value: Any, name: str = "main") -> int:
        """As `Run.save`."""
        return int(await self._do(self.lease.save, value, name))

    @noted
    async def load(self, name: str = "main") -> Any:
        """As `Run.load`."""
        return await self._do(self.lease.load, name)

    @noted
    async def attach(self, name: str, source: bytes | str | os.PathLike[str]) -> Artifact:
        """As `Run.attach`."""
        artifact: Artifact = await self._do(self.lease.attach, name, source)
        return artifact

    @noted
    async def open(self, name: str) -> BinaryIO:
        """As `Run.open`."""
        found: BinaryIO = await self._do(self.lease.open, name)
        return found

    @noted
    async def progress(self, note: str) -> None:
        """As `Run.progress`."""
        await self._do(self.lease.progress, note)

    @noted
    async def step(
        self, name: str, fn: Callable[..., Any], *args: Any, key: str | None = None, timeout: Any = None,
        retry: RetryPolicy | None = None, returns: Any = None,
    ) -> Any:  # fmt: skip
        """As `Run.step`; `fn` may be a coroutine function, any other runs in a thread."""
        return await self._parts.steps.step(name, fn, args, key, timeout, retry, returns)

    @noted
    async def effect(
        self, name: str, payload: Any, fn: Callable[..., Any], *, key: str | None = None,
        contract: Declared | None = None, timeout: Any = None, returns: Any = None,
    ) -> Any:  # fmt: skip
        """As `Run.effect`; a coroutine function is awaited in the loop, any other runs in a thread of its own.

        Both are left once `timeout` is over, the default one too.
        """
        return await self._parts.effects.effect(name, payload, fn, key, contract, timeout, returns)

    @noted
    async def approval(self, name: str, ask: Any = None, *, timeout: Any = None, default: Any = None) -> Decision:
        """As `Run.approval`."""
        return await self._parts.waits.approval(name, ask, timeout, default)

    @noted
    async def receive(self, name: str, *, timeout: Any = None, default: Any = None) -> Any:
        """As `Run.receive`."""
        return await self._parts.waits.receive(name, timeout, default)

    @noted
    async def sleep(self, duration: Any, *, name: str | None = None) -> None:
        """As `Run.sleep`."""
        await self._parts.waits.sleep(duration, name)

    @noted
    async def submit(self, name: str, queue: str, input: Any = None, **options: Any) -> Task:
        """As `Run.submit`."""
        task: Task = await self._do(self.lease.submit, name, queue, input, options)
        return task

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """As `Run.transaction`; the connection is used by blocking calls, which are short."""
        self._hands.go_on()
        async with AsyncLease(self._client, self.lease).transaction() as connection:
            yield connection

    async def _do(self, call: Callable[..., Any], *args: Any) -> Any:
        self._hands.go_on()
        return await self._hands.send(call, *args)

    def _deliver(self) -> None:
        task = self._task
        if task is None:
            return
        try:
            self._loop.call_soon_threadsafe(task.cancel)
        except RuntimeError:
            return  # the loop has ended, and with it the work


R = TypeVar("R", Run, AsyncRun)


@contextmanager
def block(run: R) -> Iterator[R]:
    """A run for a block: the current one inside of it; a parked one ends silently, a stopped one by its cause."""
    with entered(run):
        try:
            yield run
        except LeaseStopped as stopped:
            raise stopped.cause from None
        except (Parked, BaseExceptionGroup) as raised:
            if run.parked is None:
                raise
            if (error := beside(raised)) is not None:
                raise error from None


__all__ = ["AsyncRun", "Run", "block", "current_run", "enter", "entered"]
