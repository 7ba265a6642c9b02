"""A fence in front of a web service: a middleware that refuses older tokens, and a client that sends them.

The middleware holds a lock of the resource from its look at the token to the end of your handler, so that the two are
one step. That is true of one process. Where several serve one resource, use the fence of the database that they share
inside the handler's own transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol
from urllib.parse import quote, unquote

import apsw
import msgspec

from relet.core import border, limits
from relet.core.errors import Error, Invalid, StaleToken, Unavailable
from relet.fences.admission import admitted, busy, held, stale

WHERE: Final = "HTTP"
HEADERS: Final = ("relet-token", "relet-resource")
RAISE: Final = "/.well-known/relet-fence"
"""A PUT here, with both headers, raises the fence and does nothing else."""
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
RAISED, PROBLEM, STALE, REQUIRED, AWAY = 204, 400, 409, 428, 503
_TOKEN_DIGITS: Final = len(str(limits.TOKEN_MAX))

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Raises(Protocol):
    """Any fence that blocks: `SqliteFence`, `PostgresFence`, `RedisFence` and others."""

    def raise_to(self, resource: str, token: int) -> None:
        """As every fence does."""


class FenceMiddleware:
    """An ASGI application around yours that lets a request through only under a token that is good.

    `store` keeps the largest token of each resource: the path of a SQLite file, or a fence. `guarded(scope)` says
    which requests need a token (default: all but GET, HEAD, OPTIONS and TRACE; with one, every request is judged).
    `resource(scope)` says what a request is about, where the client is not to choose it. `unmarked` is "refuse"
    (428) or "pass". `patience` bounds the wait for the request before it (503).
    """

    def __init__(
        self,
        app: App,
        *,
        store: str | os.PathLike[str] | Raises = "relet-fences.db",
        guarded: Callable[[Scope], bool] | None = None,
        resource: Callable[[Scope], str] | None = None,
        unmarked: str = "refuse",
        patience: Any = 30,
    ) -> None:
        if unmarked not in ("refuse", "pass"):
            raise border.invalid("unmarked", f'{border.shown(unmarked)} is neither "refuse" nor "pass"')
        self._app = app
        self._fence = _FileOfTokens(store) if isinstance(store, (str, os.PathLike)) else store
        self._guarded = guarded or _changes_something
        self._resource = resource
        self._refuse = unmarked == "refuse"
        self._patience_ms = border.duration_ms("patience", patience)
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}
        # One thread: a connection is in one transaction at a time, and an event loop must not wait for a disk.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="relet-fence")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge, then let your application answer; or answer with a problem, and do not call it."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        try:
            shown = self._shown(scope)
            if shown is None:
                if self._refuse and self._guarded(scope):
                    return await _answer(scope, send, REQUIRED, Invalid(
                        "this request needs the headers Relet-Token and Relet-Resource; nothing was done",
                        field=HEADERS[0], code="RELET-TOKEN-REQUIRED",
                    ))  # fmt: skip
                return await self._app(scope, receive, send)
            async with self._turn(shown[0]):
                await self._raise(*shown)
                if scope["type"] == "http" and scope["method"] == "PUT" and _is_raise(scope):
                    return await _answer(scope, send, RAISED, None)
                return await self._app(scope, receive, send)
        except _Refused as refused:
            return await _answer(scope, send, refused.status, refused.error)

    def _shown(self, scope: Scope) -> tuple[str, int] | None:
        """Resource and token of a request; None for one without both."""
        texts = [self._header(scope, name) for name in HEADERS]
        try:
            if texts == [None, None]:
                return None
            token, resource = texts[0] or "", unquote(texts[1] or "", errors="strict")
            if self._resource is not None and not _is_raise(scope):
                meant = self._resource(scope)
                if texts[1] is not None and resource != meant:
                    raise border.invalid(
                        HEADERS[1], f"is {border.shown(resource)}, and this request is about {meant!r}"
                    )
                resource = meant
            if not (token.isascii() and token.isdigit() and len(token) <= _TOKEN_DIGITS):
                raise border.invalid(HEADERS[0], f"{border.shown(token)} is no token; send its digits")
            return admitted(resource, int(token))
        except Invalid as wrong:
            raise _Refused(PROBLEM, wrong) from wrong
        except UnicodeDecodeError as wrong:
            raise _Refused(PROBLEM, border.invalid(HEADERS[1], "is no UTF-8 text, percent-encoded")) from wrong

    def _header(self, scope: Scope, name: str) -> str | None:
        found = [value for key, value in scope["headers"] if key.lower() == name.encode()]
        if len(found) > 1:
            raise _Refused(PROBLEM, border.invalid(name, "was sent more than once"))
        return found[0].decode("latin-1").strip() if found else None

    async def _raise(self, resource: str, token: int) -> None:
        raised = functools.partial(self._fence.raise_to, resource, token)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, raised)
        except StaleToken as refused:
            raise _Refused(STALE, refused) from refused
        except Invalid as wrong:
            raise _Refused(PROBLEM, wrong) from wrong
        except Error as away:
            raise _Refused(AWAY, away) from away

    @contextlib.asynccontextmanager
    async def _turn(self, resource: str) -> AsyncIterator[None]:
        """One request of a resource at a time; a lock that nobody wants any more is forgotten."""
        lock, users = self._locks.get(resource, (asyncio.Lock(), 0))
        self._locks[resource] = lock, users + 1
        try:
            try:
                async with asyncio.timeout(self._patience_ms / 1_000):
                    await lock.acquire()
            except TimeoutError as late:
                away = busy(WHERE, resource, self._patience_ms, "a request before this one")
                raise _Refused(AWAY, away) from late
            try:
                yield
            finally:
                lock.release()
        finally:
            lock, users = self._locks[resource]
            self._locks[resource] = lock, users - 1
            if users == 1:
                del self._locks[resource]


class HttpFence:
    """The holder's side: sends the token with every request to a service behind `FenceMiddleware`.

    `client` is an `httpx2.Client`, or anything with its `request(method, url, **options)`; `raise_url` is where the
    middleware takes a bare raise. What the client itself raises passes through.
    """

    def __init__(self, client: Any, *, raise_url: str = RAISE) -> None:
        self._client = client
        self._raise_url = raise_url

    def raise_to(self, resource: str, token: int) -> None:
        """Accept nothing smaller than this token from now on. Raises `StaleToken`, `Unavailable`, `Invalid`."""
        answer = HttpTarget(self._client, *admitted(resource, token)).request("PUT", self._raise_url)
        if answer.status_code != RAISED:
            raise Unavailable(
                f"{WHERE}: no fence answered at {self._raise_url}, but a {answer.status_code}; is FenceMiddleware "
                "around that application, and may this client reach it?",
                code="RELET-FENCE-TARGET", status=answer.status_code,
            )  # fmt: skip

    @contextlib.contextmanager
    def write(self, resource: str, token: int) -> Iterator[HttpTarget]:
        """A target whose every request carries the token and is judged on its own, in one step with its handler.

        Raises `StaleToken` before the block, and at each request. What was answered before stays.
        """
        self.raise_to(resource, token)
        yield HttpTarget(self._client, resource, token)


class HttpTarget:
    """What a block sends with."""

    def __init__(self, client: Any, resource: str, token: int) -> None:
        self._client, self._resource, self._token = client, resource, token

    def request(self, method: str, url: str, **options: Any) -> Any:
        """The client's own answer. Raises `StaleToken`, or `Unavailable` when the fence could not be asked."""
        headers = {**dict(options.pop("headers", None) or {}), **fence_headers(self._resource, self._token)}
        answer = self._client.request(method, url, headers=headers, **options)
        if (refusal := refusal_of(answer, self._resource, self._token)) is not None:
            raise refusal
        return answer


def refusal_of(answer: Any, resource: str, token: int) -> StaleToken | Invalid | Unavailable | None:
    """What the middleware said in the application's place; None where the application itself has answered."""
    problem = _problem(answer)
    match problem.get("code"):
        case StaleToken.code:
            return stale(WHERE, resource, token, int(problem["current_token"]))
        case Invalid.code if answer.status_code == PROBLEM:
            return Invalid(str(problem.get("detail")), field=problem.get("field"))
        case str() as code if answer.status_code == AWAY:
            return Unavailable(str(problem.get("detail")), code=code)
        case _:
            return None


def fence_headers(resource: str, token: int) -> dict[str, str]:
    """The two headers, for a client of your own: `httpx2.Client(headers=fence_headers("order-7", lease.token))`."""
    resource, token = held(resource, token)
    return {"Relet-Token": str(token), "Relet-Resource": quote(resource, safe="")}


class _Refused(Exception):
    def __init__(self, status: int, error: Error) -> None:
        super().__init__(status)
        self.status, self.error = status, error


class _FileOfTokens:
    """A SQLite file that holds nothing but fences, opened by the first request: a forked server opens its own."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.path.abspath(path)
        self._fence: Raises | None = None

    def raise_to(self, resource: str, token: int) -> None:
        if self._fence is None:
            from relet.fences.sqlite import SqliteFence

            try:
                connection = apsw.Connection(self._path)
                connection.pragma("journal_mode", "wal")
            except apsw.Error as wrong:
                raise Unavailable(
                    f"{WHERE}: {self._path} cannot be opened ({wrong})", code="RELET-CANNOT-OPEN"
                ) from wrong
            self._fence = SqliteFence(connection)
        self._fence.raise_to(resource, token)


def _is_raise(scope: Scope) -> bool:
    return str(scope["path"]).endswith(RAISE)  # at its end, since an application may be mounted below a path


def _changes_something(scope: Scope) -> bool:
    return bool(scope["type"] == "websocket" or scope["method"] not in SAFE)


def _problem(answer: Any) -> dict[str, Any]:
    if not str(answer.headers.get("content-type", "")).startswith("application/problem+json"):
        return {}
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(answer.content, type=dict[str, Any])
    return {}


async def _answer(scope: Scope, send: Send, status: int, error: Error | None) -> None:
    if scope["type"] == "websocket":
        return await send({"type": "websocket.close", "code": 1008, "reason": "a relet token is needed, or is stale"})
    body, headers = b"", [(b"content-length", b"0")]
    if error is not None:
        told = {"type": "about:blank", "title": type(error).__name__, "status": status, "code": error.code}
        body = msgspec.json.encode(told | {"detail": error.message} | error.detail)
        headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
    return None
