"""The awaiting client over SQLite, driven from one event loop, behind a facade that awaits for the test."""

import asyncio
import inspect
import threading
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from functools import cached_property

from relet.client.awaiting import AsyncClient
from relet.client.awaiting_lease import AsyncLease
from relet.client.durable.run import AsyncRun
from relet.testing.stores import open_store
from tests.conformance.on_sqlite import SqliteRoute

PATIENCE_S = 30


class Loop:
    """An event loop on a thread of its own."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="route-loop", daemon=True)
        self._thread.start()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_S)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()


class Awaited:
    """A client or a lease whose verbs are awaited on the loop; everything else is passed on."""

    def __init__(self, loop, inner):
        self._loop, self.inner = loop, inner

    def __getattr__(self, name):
        value = getattr(self.inner, name)
        if not callable(value):
            return value

        def verb(*args, **named):
            asked = value(*map(bare, args), **{key: bare(item) for key, item in named.items()})
            if inspect.isasyncgen(asked):
                return self._steps(asked)
            if isinstance(asked, AbstractAsyncContextManager):
                return Block(self._loop, asked)
            return self._clothed(self._loop.run(asked) if inspect.isawaitable(asked) else asked)

        return verb

    def _steps(self, changes):
        try:
            while True:
                yield self._loop.run(anext(changes))
        finally:
            self._loop.run(changes.aclose())

    def _clothed(self, answer):
        if isinstance(answer, AsyncLease):
            return Awaited(self._loop, answer)
        return [self._clothed(item) for item in answer] if isinstance(answer, list) else answer


class Block:
    """An `async with` block on the loop, within one task from its start to its end; a `with` block for the test."""

    def __init__(self, loop, asked):
        self._loop, self._asked = loop, asked
        self._entered, self._left = Future(), Future()

    def __enter__(self):
        self._held = asyncio.run_coroutine_threadsafe(self._hold(), self._loop.loop)
        value = self._entered.result(PATIENCE_S)
        return Awaited(self._loop, value) if isinstance(value, AsyncRun) else value

    def __exit__(self, kind, raised, trace):
        if not self._left.cancelled():  # by a loss, which cancels the task of the block
            self._left.set_result(raised)
        try:
            self._held.result(PATIENCE_S)
        except BaseException as error:
            if error is not raised:
                raise
            return False
        return True

    async def _hold(self):
        try:
            async with self._asked as value:
                self._entered.set_result(value)
                if (raised := await asyncio.wrap_future(self._left)) is not None:
                    raise raised  # noqa: TRY301 - within the block, as the test raised it
        except BaseException as error:
            if self._entered.done():
                raise
            self._entered.set_exception(error)


def bare(value):
    """An argument without its facade."""
    if isinstance(value, Awaited):
        return value.inner
    if is_group(value):
        return type(value)(map(bare, value))
    return value


def is_group(value):
    """Leases, or pairs with leases: the only lists that verbs take apart; a payload is passed on as it is."""
    return type(value) in (list, tuple) and any(isinstance(item, Awaited) or is_pair(item) for item in value)


def is_pair(item):
    return type(item) is tuple and len(item) == 2 and isinstance(item[0], Awaited)


class AwaitingRoute(SqliteRoute):
    def __init__(self, folder, loop):
        super().__init__(folder)
        self._loop = loop
        self.db = self._open()

    @cached_property
    def other(self):
        return self._open()

    @cached_property
    def stranger(self):
        return self._open(tenant="elsewhere")

    def _open(self, **options):
        return self.opened(Awaited(self._loop, AsyncClient(open_store(self.folder, self.clock, **options))))

    def call(self, ask):
        return self._loop.run(self.db.inner.hop(self.db.inner.blocking.backend.call, ask))

    def locked(self):
        return self.locked_against(self.db.inner.blocking)
