"""How a run asks its store and calls its functions; what is durable is written once, for either kind of hands."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from relet.client.durable.timed import Late, Listened, named, within
from relet.client.lease import STORE_AWAY
from relet.core.border import invalid
from relet.core.errors import Error, LeaseLost, LeaseStopped

if TYPE_CHECKING:
    from relet.client.awaiting import AsyncClient
    from relet.client.durable.facts import RunFacts

ASK_AGAIN_S: Final = 0.2
LAST_WORD_S: Final = 5.0
"""How long a handler that was cancelled, in a run that goes on, waits until the store has heard of it."""


Amend = Callable[[Any], Coroutine[Any, Any, Any]]


class Hands(Protocol):
    """The port of durable composition. Its coroutines of a blocking run never suspend."""

    def go_on(self) -> None:
        """Raise what a run that must stop raises."""

    async def send(self, call: Callable[..., Any], *args: Any) -> Any:
        """The answer of a blocking call to the store."""

    def fits(self, function: Callable[..., Any]) -> None:
        """Raise `Invalid` for a function that these hands cannot call."""

    def unwinding(self, lost: LeaseLost) -> BaseException:
        """What a refusal means to the handler."""

    async def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float | None, *, timed: bool = True,
        late: Late | None = None,
    ) -> Any:  # fmt: skip
        """The user's function, its coroutine awaited. Raises TimeoutError.

        A timeout that nobody asked for (`timed`) bounds coroutines, and blocking functions only where they have a
        thread of their own anyway.
        """

    async def whole(self, asking: Coroutine[Any, Any, Any], amend: Amend | None = None) -> Any:
        """The answer of something that a cancel must not cut in two; `amend` takes it back where it was cancelled."""

    async def last_word(self, telling: Callable[[], Awaitable[Any]]) -> None:
        """Tell, although the handler's task is cancelled, when the run goes on without it; raises nothing."""

    async def pause(self, seconds: float) -> None:
        """Wait, and no longer than the run may go on."""


async def surely(run: RunFacts, hands: Hands, ask: Any) -> Any:
    """The answer to a request that may be repeated: while nobody answers and the lease is held, asked once more."""
    while True:
        try:
            return await hands.send(run.lease.send, ask)
        except STORE_AWAY:
            if run.lease.status == "lost":
                raise
        await hands.pause(ASK_AGAIN_S)


class BlockingHands:
    """Calls in the thread of the handler; with a timeout in a thread of their own, which may outlive it."""

    def __init__(self, run: RunFacts) -> None:
        self._run = run

    def go_on(self) -> None:
        if (cause := self._run.must_stop()) is not None:
            self._run.told = True
            raise LeaseStopped(cause)

    async def send(self, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except LeaseLost as lost:
            raise self.unwinding(lost) from lost

    def unwinding(self, lost: LeaseLost) -> BaseException:
        """What a refusal means to the handler: the end of its run, unless the lease is merely too short."""
        if self._run.parked is not None:
            return self._run.parked
        if self._run.stopped is None and self._run.lease.status != "lost":
            return lost
        self._run.told = True
        return LeaseStopped(self._run.stopped or lost)

    def fits(self, function: Callable[..., Any]) -> None:
        if inspect.iscoroutinefunction(function):
            raise _needs_async(function)

    async def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float | None, *, timed: bool = True,
        late: Late | None = None,
    ) -> Any:  # fmt: skip
        if timeout_s is None or not timed:
            found = function(*args)
        else:
            found = within(timeout_s, Listened(function, late), args)
        if inspect.iscoroutine(found):
            found.close()
            raise _needs_async(function)
        return found

    async def whole(self, asking: Coroutine[Any, Any, Any], amend: Amend | None = None) -> Any:  # noqa: ARG002 - the port's
        return await asking  # nothing cancels a thread

    async def last_word(self, telling: Callable[[], Awaitable[Any]]) -> None:
        if self._run.stopped is None and self._run.parked is None:
            with suppress(Error):
                await telling()

    async def pause(self, seconds: float) -> None:
        self._run.lease.lost.wait(seconds)
        self.go_on()


class AwaitingHands:
    """Awaits in the task of the handler; functions that are not coroutines run in a thread."""

    def __init__(self, run: RunFacts, client: AsyncClient) -> None:
        self._run = run
        self._client = client

    def go_on(self) -> None:
        if (cause := self._run.must_stop()) is not None:
            self._run.told = True
            raise cause

    async def send(self, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return await self._client.hop(call, *args)
        except LeaseLost as lost:
            raise self.unwinding(lost) from lost

    def unwinding(self, lost: LeaseLost) -> BaseException:
        """What a refusal means to the handler: it is cancelled once its run must stop, and told of it here."""
        return self._run.parked or lost

    def fits(self, function: Callable[..., Any]) -> None:
        """Both kinds do."""

    async def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float | None, *,
        timed: bool = True,  # noqa: ARG002 - a thread of its own in either case
        late: Late | None = None,
    ) -> Any:  # fmt: skip
        async with asyncio.timeout(timeout_s):
            if inspect.iscoroutinefunction(function):
                return await function(*args)
            listened = Listened(function, late)
            try:
                found = await asyncio.to_thread(listened, *args)
            except asyncio.CancelledError:
                if not listened.leave():
                    asyncio.get_running_loop().run_in_executor(None, listened.tell_late)
                raise
            return await found if inspect.isawaitable(found) else found

    async def whole(self, asking: Coroutine[Any, Any, Any], amend: Amend | None = None) -> Any:
        task = asyncio.ensure_future(asking)
        task.add_done_callback(_retrieved)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await self.last_word(lambda: _amended(task, amend))
            raise

    async def last_word(self, telling: Callable[[], Awaitable[Any]]) -> None:
        if self._run.stopped is None and self._run.parked is None:
            task = asyncio.ensure_future(telling())
            task.add_done_callback(_retrieved)
            if not (await asyncio.wait({task}, timeout=LAST_WORD_S))[0]:
                task.cancel()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.go_on()


def _needs_async(function: Callable[..., Any]) -> Exception:
    said = f"{named(function)} is a coroutine function; make the handler `async def`, or give a plain function"
    return invalid("fn", said)


async def _amended(asked: asyncio.Task[Any], amend: Amend | None) -> None:
    answer = await asked
    if amend is not None:
        await amend(answer)


def _retrieved(done: asyncio.Task[Any]) -> None:
    """What it raised concerns nobody any more, and is no fault of a program that did not ask for it."""
    if not done.cancelled():
        done.exception()
