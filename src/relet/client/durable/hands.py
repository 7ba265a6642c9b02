"""How a run asks its store and calls its functions; what is durable is written once, for either kind of hands."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from relet.client.lease import STORE_AWAY
from relet.core.border import invalid
from relet.core.errors import LeaseLost, LeaseStopped

if TYPE_CHECKING:
    from relet.client.awaiting import AsyncClient
    from relet.client.durable.facts import RunFacts

ASK_AGAIN_S = 0.2


class Hands(Protocol):
    """The port of durable composition. Its coroutines of a blocking run never suspend."""

    def go_on(self) -> None:
        """Raise what a run that must stop raises."""

    async def send(self, call: Callable[..., Any], *args: Any) -> Any:
        """The answer of a blocking call to the store."""

    def fits(self, function: Callable[..., Any]) -> None:
        """Raise `Invalid` for a function that these hands cannot call."""

    async def call(self, function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float | None) -> Any:
        """The user's function, its coroutine awaited. Raises TimeoutError."""

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

    async def call(self, function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float | None) -> Any:
        found = function(*args) if timeout_s is None else _within(timeout_s, function, args)
        if inspect.iscoroutine(found):
            found.close()
            raise _needs_async(function)
        return found

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
            raise self._run.parked or lost from lost

    def fits(self, function: Callable[..., Any]) -> None:
        """Both kinds do."""

    async def call(self, function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float | None) -> Any:
        async with asyncio.timeout(timeout_s):
            if inspect.iscoroutinefunction(function):
                return await function(*args)
            found = await asyncio.to_thread(function, *args)
            return await found if inspect.isawaitable(found) else found

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.go_on()


def _needs_async(function: Callable[..., Any]) -> Exception:
    name = getattr(function, "__name__", repr(function))
    return invalid("fn", f"{name} is a coroutine function; make the handler `async def`, or give a plain function")


def _within(seconds: float, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The answer of a function that may take so long; a thread cannot be ended, so a late one runs on unheard."""
    said: list[tuple[bool, Any]] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            said.append((True, context.run(function, *args)))
        except BaseException as raised:  # noqa: BLE001 - raised again where it is waited for
            said.append((False, raised))

    thread = threading.Thread(target=work, name="relet-timed", daemon=True)
    thread.start()
    thread.join(seconds)
    if not said:
        raise TimeoutError(f"{getattr(function, '__name__', function)!r} took longer than {seconds:g} s")
    good, value = said[0]
    if good:
        return value
    raise value
