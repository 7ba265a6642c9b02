"""Every request as it looks from outside: how long it took, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relet.core.catalog import BY_NAME
from relet.core.problem import MEDIA_TYPE
from relet.core.rules.claim import CLAIM
from relet.core.whoami import PREFIX
from relet.server.figures import REFUSED, REQUESTS, STREAMS
from relet.server.passing import OTHER, Panel

OK: Final = "ok"
GONE: Final = "gone"
"""Whoever asked went away before there was an answer."""
REFUSALS: Final = {401: "no_credential", 403: "forbidden", 421: "wrong_host", 429: "too_many"}
_STREAM: Final = b"text/event-stream"
_FILES: Final = f"{PREFIX}/artifacts/"
_OTHERS: Final = frozenset(
    {"/healthz", "/readyz", "/metrics", "/openapi.json", f"{PREFIX}/whoami", f"{PREFIX}/audit"}
)


class _Problem(msgspec.Struct):
    code: str


_DECODER: Final = msgspec.json.Decoder(_Problem)


def asked_for(scope: Scope) -> str:
    """The operation of a request, in one of so many words, whatever its path says."""
    path: str = scope["path"]
    name = path.removeprefix(f"{PREFIX}/")
    if name in BY_NAME and name != path:
        # One that waits for a task takes as long as nobody submits one.
        waits = name == CLAIM.name and b"wait=" in scope["query_string"]
        return f"{name}_wait" if waits else name
    if path.startswith(_FILES):
        return "put_artifact" if scope["method"] == "PUT" else "get_artifact"
    return path.rpartition("/")[2] if path in _OTHERS else OTHER


class _Answer:
    """What has gone out of an answer."""

    def __init__(self, send: Send, is_stream: Callable[[], None]) -> None:
        self._send, self._is_stream = send, is_stream
        self.status, self.code, self.streams = 0, GONE, False
        self._is_problem = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kind = next((value for name, value in message["headers"] if name.lower() == b"content-type"), b"")
            self.status, self.code, self._is_problem = message["status"], OK, kind == MEDIA_TYPE.encode()
            if kind.startswith(_STREAM):
                self.streams = True
                self._is_stream()
        elif self._is_problem and message.get("body"):
            self._is_problem = False
            self.code = _DECODER.decode(message["body"]).code
        await self._send(message)


class Timed:
    """Around the gate, so that it sees those who are turned away too. It answers nothing, and lets all through."""

    def __init__(self, app: ASGIApp, panel_of: Callable[[str | None], Panel]) -> None:
        self._app, self._panel_of = app, panel_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send, lambda: self._panel(scope).board.add(STREAMS, 1))
        began = time.perf_counter()
        try:
            await self._app(scope, receive, answer.send)
        finally:
            board = self._panel(scope).board
            if answer.streams:
                board.add(STREAMS, -1)
            else:
                board.observe(REQUESTS, time.perf_counter() - began, asked_for(scope), answer.code)
            if (reason := REFUSALS.get(answer.status)) is not None:
                board.add(REFUSED, 1, reason)

    def _panel(self, scope: Scope) -> Panel:
        access = scope.get("access")
        return self._panel_of(None if access is None else access.tenant)
