"""Streams that stay open: what changed, to be gone on from anywhere, and the bare word that something has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from relet.core.access import Access
from relet.core.border import invalid
from relet.core.errors import Error
from relet.core.limits import TOKEN_MAX
from relet.core.received import received
from relet.core.rules.inspect import CHANGES, Changes
from relet.core.wire import encode
from relet.server.answers import HEADERS
from relet.server.counted import Counted
from relet.server.numbers import whole
from relet.server.reach import check_reach
from relet.server.service import Service
from relet.server.still import AGAIN_S, Still

STREAMS_MAX: Final = 1_000
STREAMS_PER_KEY_MAX: Final = 200
STILL_HERE_S: Final = 15.0
"""Something is said so often at least: what is on the way ends lines that are silent."""
SEQ: Final = "event's number; give that of the last one seen"
TELL_EVERY_S: Final = 0.02
MEDIA_TYPE: Final = "text/event-stream"
_HEADERS: Final = {**HEADERS, "X-Accel-Buffering": "no"}
_SILENT: Final = b": still here\n\n"


class Streams:
    """All open streams of the service."""

    def __init__(self, service: Service, still: Still) -> None:
        self._service, self._still = service, still
        self._open = Counted(STREAMS_PER_KEY_MAX, STREAMS_MAX, "streams")

    async def changes(self, request: Request) -> Response:
        """Events of the history from `after`, or from the last id that a client has seen; never ends by itself."""
        access: Access = request.scope["access"]
        if (refusal := access.refusal(CHANGES.name, ())) is not None:
            raise refusal
        query = request.query_params
        last = whole("Last-Event-ID", request.headers.get("last-event-id"), SEQ, most=TOKEN_MAX)
        after = whole("after", query.get("after"), SEQ, most=TOKEN_MAX)
        named = {name: query[name] for name in ("queue", "task_id") if name in query}
        ask = received(CHANGES, encode({"after": after if last is None else last, **named}))
        await check_reach(self._service, access, CHANGES, ask)
        first = await self._service.ask(access.tenant, ask)
        if ask.after and not first.events:
            await self._check_end(access.tenant, ask, "after" if last is None else "Last-Event-ID")

        async def told() -> AsyncIterator[bytes]:
            page = first
            while True:
                for event in page.events:
                    yield b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.kind.encode(), encode(event))
                seen = self._service.news.version
                page = await self._service.ask(access.tenant, msgspec.structs.replace(ask, after=page.cursor))
                if not page.events:
                    yield b"id: %d\n\n" % page.cursor
                    async for silent in self._until(seen):
                        yield silent

        return self._stream(request, access, told)

    async def _check_end(self, tenant: str, ask: Changes, field: str) -> None:
        """A number of another store, or of this one before it was restored, would be waited for in silence."""
        end = (await self._service.ask(tenant, msgspec.structs.replace(ask, after=None))).cursor
        if ask.after is not None and ask.after > end:
            raise invalid(
                field,
                f"{ask.after} is beyond the last event, which is {end}: it is of another store, or of this one "
                "before it was restored. Look at the tasks anew, and go on without it",
            )

    async def news(self, request: Request) -> Response:
        """That somebody has committed, and nothing of what."""
        access: Access = request.scope["access"]

        async def told() -> AsyncIterator[bytes]:
            yield _SILENT
            while True:
                seen = self._service.news.version
                async for silent in self._until(seen):
                    yield silent
                yield b"data: %d\n\n" % self._service.news.version
                await asyncio.sleep(TELL_EVERY_S)

        return self._stream(request, access, told)

    async def _until(self, seen: int) -> AsyncIterator[bytes]:
        """Until something has changed: a word now and then, so that whoever reads it knows that all is well."""
        said_at = time.monotonic()
        while await self._service.news.wait(seen, AGAIN_S) == seen:
            # An empty piece lets the stream be ended from outside.
            yield b""
            if time.monotonic() - said_at >= STILL_HERE_S:
                said_at = time.monotonic()
                yield _SILENT

    def _stream(self, request: Request, access: Access, told: Callable[[], AsyncIterator[bytes]]) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                async for piece in told():
                    if self._service.news.stopping.is_set():
                        return
                    await self._still.check(request)
                    if piece:
                        yield piece
            except Error as ended:
                yield b"event: end\ndata: %s\n\n" % encode({"code": ended.code, "detail": ended.message})

        return _Stream(pieces(), self._open.one(access.key_id))


class _Stream(StreamingResponse):
    """Counted from before its first byte to its end, however that comes."""

    def __init__(self, pieces: AsyncIterator[bytes], counted: AbstractContextManager[None]) -> None:
        super().__init__(pieces, media_type=MEDIA_TYPE, headers=_HEADERS)
        self._held = ExitStack()
        self._held.enter_context(counted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            await super().__call__(scope, receive, send)
