"""The body of a request: read within its limits of size and time, whoever sends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.requests import ClientDisconnect, Request

from relet.core.border import shown
from relet.core.errors import Invalid, Unavailable
from relet.core.problem import MEDIA, SLOW, TOO_LARGE
from relet.server.answers import JSON
from relet.server.rates import too_often

BODY_BYTES_MAX: Final = 32 << 20
BODY_S: Final = 30.0
"""For all of it; who sends slower is told so, and holds nothing meanwhile but its connection."""
BODIES_BYTES_MAX: Final = 256 << 20
"""Of all bodies that are here at one time, whole or half."""
OF_ONE_KEY: Final = 1 / 2
"""Of that: whoever sends much, or slowly, leaves room for others."""


class Bodies:
    """All that are here."""

    def __init__(self) -> None:
        self._here: dict[str, int] = {}

    @asynccontextmanager
    async def of(self, request: Request, key_id: str) -> AsyncIterator[bytes]:
        """All of a JSON body, for as long as it is needed.

        Raises `Invalid` for too much, or for another kind; `Unavailable` when it does not come, or finds no room.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise Invalid(
                f"Content-Type: {shown(kind)} is not {JSON}; send JSON, and say so", code=MEDIA, field="Content-Type"
            )
        if _told_size(request) > BODY_BYTES_MAX:
            raise too_large()
        pieces: list[bytes] = []
        try:
            await self._read(request, key_id, pieces)
            yield b"".join(pieces)
        finally:
            if pieces:
                self._here[key_id] -= sum(map(len, pieces))
                if not self._here[key_id]:
                    del self._here[key_id]

    async def _read(self, request: Request, key_id: str, pieces: list[bytes]) -> None:
        size = 0
        try:
            async with asyncio.timeout(BODY_S):
                async for piece in request.stream():
                    pieces.append(piece)
                    size += len(piece)
                    self._here[key_id] = self._here.get(key_id, 0) + len(piece)
                    if size > BODY_BYTES_MAX:
                        raise too_large()
                    self._check_room(key_id)
        except TimeoutError:
            raise Unavailable(
                f"the body did not come within {BODY_S:.0f} s; nothing was done, send it again", code=SLOW
            ) from None
        except ClientDisconnect:
            raise Unavailable("the connection ended before the body did; nothing was done", code=SLOW) from None

    def _check_room(self, key_id: str) -> None:
        if self._here[key_id] > BODIES_BYTES_MAX * OF_ONE_KEY or sum(self._here.values()) > BODIES_BYTES_MAX:
            raise too_often("the service has as many bytes of requests in hand as it takes at once", "Send it again")


def too_large() -> Invalid:
    """The refusal of a body beyond the limit."""
    return Invalid(
        f"body: has more than {BODY_BYTES_MAX:,} bytes; send fewer items at once, or attach large values",
        code=TOO_LARGE, field="body",
    )  # fmt: skip


def _told_size(request: Request) -> int:
    told = request.headers.get("content-length", "0")
    return int(told) if told.isascii() and told.isdigit() else 0
