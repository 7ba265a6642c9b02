"""Artifacts up and down, piece by piece; never more than a piece of them in memory, and nothing visible half done."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from functools import partial
from typing import IO, Any, BinaryIO, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from relet.artifacts.uri import given_digest, uri_of
from relet.core.access import Access
from relet.core.errors import Invalid, Unavailable
from relet.core.limits import ARTIFACT_BYTES_MAX
from relet.core.problem import SLOW, TOO_LARGE
from relet.core.rules.attach import ATTACH
from relet.core.rules.inspect_work import ARTIFACTS
from relet.server.answers import BYTES, HEADERS
from relet.server.counted import Counted
from relet.server.lines import HANG_UP
from relet.server.service import Service
from relet.server.uploads import Uploads, not_here

PIECE_BYTES: Final = 1 << 20
PIECE_S: Final = 30.0
"""For the next piece of an upload to come, and for any number of bytes to begin with."""
BYTES_PER_S_LEAST: Final = 4_096
"""Beyond that, on the average: who sends a byte now and then holds a place that others wait for."""
DOWNLOADS_PER_KEY_MAX: Final = 16
DOWNLOADS_MAX: Final = 64
"""Each may hold 8 MiB, which are checked before the first of them goes out."""
_HEADERS: Final = {**HEADERS, "Content-Disposition": "attachment", "Content-Security-Policy": "sandbox"}
"""Whatever it is, a browser shows nothing of it."""


class Files:
    """The place of artifacts, over HTTP."""

    def __init__(self, service: Service, uploads: Uploads) -> None:
        self._service, self._uploads = service, uploads
        self._downloads = Counted(DOWNLOADS_PER_KEY_MAX, DOWNLOADS_MAX, "downloads")

    async def asked(self, request: Request) -> Response:
        """The route of all of its methods: one of two would name only its own to whoever asked by another."""
        return await (self.put(request) if request.method == "PUT" else self.get(request))

    async def put(self, request: Request) -> Response:
        """Store the bytes of the body, whose SHA-256 the path names. Safe to repeat."""
        access = _allowed(request, ATTACH.name)
        digest = given_digest("sha256", request.path_params["sha256"])
        in_thread = self._service.in_thread
        with tempfile.NamedTemporaryFile(prefix="relet-upload-") as draft:
            await self._received(request, draft)
            try:
                await in_thread(lambda: self._service.place.put(draft.name, digest), waits=True)
            except Invalid as refused:
                raise _not_those(digest, refused) from refused
        await self._uploads.note(access, digest)
        return Response(status_code=204, headers=HEADERS)

    async def _received(self, request: Request, draft: IO[bytes]) -> None:
        size, began = 0, time.monotonic()
        pieces = request.stream()
        try:
            while True:
                async with asyncio.timeout(PIECE_S):
                    piece = await anext(pieces, None)
                if piece is None:
                    break
                size += len(piece)
                if size > ARTIFACT_BYTES_MAX:
                    raise Invalid(
                        f"body: has more than {ARTIFACT_BYTES_MAX:,} bytes; store it in parts", code=TOO_LARGE,
                        field="body",
                    )  # fmt: skip
                if time.monotonic() - began > PIECE_S + size / BYTES_PER_S_LEAST:
                    raise _too_slow()
                if piece:
                    await self._service.in_thread(partial(draft.write, piece), waits=True)
        except TimeoutError:
            raise _too_slow() from None
        except ClientDisconnect:
            raise Unavailable("the connection ended before the body did; nothing was stored", code=SLOW) from None
        await self._service.in_thread(draft.flush, waits=True)

    async def get(self, request: Request) -> Response:
        """The bytes, checked while they go out; HEAD tells whether they are there, and how many."""
        access = _allowed(request, ARTIFACTS.name)
        digest = given_digest("sha256", request.path_params["sha256"])
        uri = uri_of(digest)
        await self._uploads.check(access, [digest])
        place, in_thread = self._service.place, self._service.in_thread
        if request.method == "HEAD" and not await in_thread(lambda: place.exists(uri)):
            raise not_here(digest)
        with ExitStack() as held:
            held.enter_context(self._downloads.one(access.key_id))
            opened = held.enter_context(await in_thread(lambda: place.open(uri), waits=True))
            headers = {**_HEADERS, "Content-Length": str(await in_thread(lambda: _size_of(opened)))}
            if request.method == "HEAD":
                return Response(media_type=BYTES, headers=headers)

            async def pieces() -> AsyncIterator[bytes]:
                while piece := await in_thread(lambda: opened.read(PIECE_BYTES), waits=True):
                    yield piece

            return _Download(pieces(), held.pop_all(), headers)


class _Download(StreamingResponse):
    """Bytes on their way to somebody who takes them; who takes nothing for a while is hung up on."""

    def __init__(self, pieces: AsyncIterator[bytes], held: ExitStack, headers: dict[str, str]) -> None:
        super().__init__(pieces, media_type=BYTES, headers=headers)
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def in_time(message: Message) -> None:
            async with asyncio.timeout(PIECE_S):
                await send(message)

        with self._held:
            try:
                await super().__call__(scope, receive, in_time)
            except (TimeoutError, ClientDisconnect):
                if (hang_up := scope.get("extensions", {}).get(HANG_UP)) is not None:
                    hang_up()


def _too_slow() -> Unavailable:
    return Unavailable(
        f"the body comes too slowly: nothing for {PIECE_S:.0f} s, or less than {BYTES_PER_S_LEAST} bytes a second; "
        "nothing was stored, send it again",
        code=SLOW,
    )  # fmt: skip


def _not_those(digest: str, refused: Invalid) -> Invalid:
    """The refusal, without the name that the bytes have on this machine meanwhile."""
    if refused.detail.get("field") != "sha256":
        return refused
    return Invalid(
        f"sha256: the body is of other bytes than {digest}; nothing was stored. Send those, or name the SHA-256 of "
        "the body",
        field="sha256",
    )  # fmt: skip


def _allowed(request: Request, operation: str) -> Access:
    access: Access = request.scope["access"]
    if (refusal := access.refusal(operation, ())) is not None:
        raise refusal
    return access


def _size_of(opened: BinaryIO) -> int:
    if hasattr(opened, "getbuffer"):
        return len(opened.getbuffer())
    raw: Any = getattr(opened, "raw", opened)
    return int(raw.size)
