"""One request to a service, and what its answer means; also what a missing answer means."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import httpx2

from relet.client.http.address import FILE_VARIABLE, KEY_VARIABLE
from relet.core import problem
from relet.core.errors import Error, Forbidden, Invalid, NotFound, OutcomeUnknown, Unavailable

CONNECT_S: Final = 4.0
"""Bad addresses are told within five seconds."""
ANSWER_S: Final = 10.0
"""How much longer than the service may wait for its store an answer may take."""
FIRST_S: Final = 4.8
SLOWLY_S: Final = 5.0
CONNECTIONS_MAX: Final = 20
NO_SERVICE: Final = "RELET-NO-SERVICE"
BUSY: Final = "RELET-BUSY"
_SHOWN_CHARS: Final = 200
_DIGITS_MAX: Final = 9
_ASKS_WHO: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED)
_NOT_DONE: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""What OpenSSL calls an answer that is no TLS at all, by its release."""
_NOT_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""The service cannot have seen anything of it."""


class Span(NamedTuple):
    """How long a request may take: to get a connection, and then for each piece of the way there and back."""

    connect_s: float
    answer_s: float
    slowly_s: float = 0.0
    """For so long it is asked again where the service says that it is asked too often, as late as it says."""

    @classmethod
    def usual(cls, store_s: float = 0.0) -> Span:
        """As long as anything may take, and for so long the service may wait for its store."""
        return cls(CONNECT_S, ANSWER_S + store_s, SLOWLY_S)

    @classmethod
    def within(cls, seconds: float) -> Span:
        """No longer than that in all."""
        return cls(seconds / 4, seconds / 2)

    @property
    def timeout(self) -> httpx2.Timeout:
        """As the driver takes it."""
        return httpx2.Timeout(self.answer_s, connect=self.connect_s, pool=self.connect_s)


BYTES: Final = Span(CONNECT_S, 60.0)
"""For a piece of an artifact, or for the service to put one on its disk."""


class Line:
    """Connections to one service, shared by all threads; a forked child makes its own."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url = url
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None

    @property
    def client(self) -> httpx2.Client:
        """Made when it is first needed."""
        with self._lock:
            if self._client is None:
                self._client = httpx2.Client(
                    base_url=self.url, headers=self._headers, follow_redirects=False, trust_env=False,
                    # Without TLS there is nothing to verify, and to be ready for it takes a quarter of a second.
                    verify=self.url.startswith("https:"),
                    timeout=httpx2.Timeout(ANSWER_S, connect=CONNECT_S),
                    limits=httpx2.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX),
                )  # fmt: skip
            return self._client

    def ask(
        self, method: str, path: str, *, writes: bool, span: Span | None = None, content: Any = None,
        headers: dict[str, str] | None = None,
    ) -> httpx2.Response:  # fmt: skip
        """The answer with a status of success. Raises the error that the service tells, or what its absence means.

        `writes`: without an answer nobody can say whether it happened. Where nothing can have been sent, or nothing
        is written, it is `Unavailable`.
        """
        span = span or Span.usual()
        until = time.monotonic() + span.slowly_s
        while True:
            try:
                response = self.client.request(method, path, content=content, headers=headers, timeout=span.timeout)
            except _NOT_SENT as wrong:
                raise self.unreachable(wrong) from wrong
            except httpx2.HTTPError as wrong:
                raise self.unanswered(_word(wrong), writes=writes) from wrong
            if response.is_success:
                return response
            after_s = _after_s(response)
            if after_s is None or time.monotonic() + after_s > until:
                raise self.refusal(response.status_code, response.content, writes=writes)
            time.sleep(after_s)

    def send(self, path: str, content: Iterator[bytes]) -> None:
        """Put bytes there; nobody sees them before all have arrived, so that without an answer nothing is unknown."""
        self.ask("PUT", path, writes=False, span=BYTES, content=content)

    @contextmanager
    def fetched(self, path: str) -> Iterator[tuple[int, Iterator[bytes]]]:
        """How many bytes an answer has, and the pieces of it as they come."""
        try:
            with self.client.stream("GET", path, timeout=BYTES.timeout) as response:
                if not response.is_success:
                    raise self.refusal(response.status_code, response.read(), writes=False)
                if (size := response.headers.get("content-length")) is None:
                    raise self.unanswered("without a length", writes=False)
                yield int(size), self._pieces(response)
        except _NOT_SENT as wrong:
            raise self.unreachable(wrong) from wrong
        except httpx2.HTTPError as wrong:
            raise self.unanswered(_word(wrong), writes=False) from wrong

    def _pieces(self, response: httpx2.Response) -> Iterator[bytes]:
        try:
            yield from response.iter_raw()
        except httpx2.HTTPError as wrong:
            raise self.unanswered(_word(wrong), writes=False) from wrong

    def unreachable(self, wrong: Exception) -> Unavailable:
        """No connection came to be."""
        why = _word(wrong)
        ask = "Is `relet serve` running there, and the address right"
        if any(name in why for name in _NO_TLS):
            ask = f"Who answers there speaks no TLS; is it http://{self.url.removeprefix('https://')}"
        return Unavailable(f"{self.url} cannot be reached ({why}); nothing was written. {ask}", code=NO_SERVICE)

    def unreadable(self, body: bytes, *, writes: bool) -> Error:
        """An answer of success that is none of a service of ours: something in between has given it."""
        return self.unanswered(f"another one than relet's: {_said(body)}", writes=writes)

    def unanswered(self, why: str, *, writes: bool) -> Error:
        """It was sent, or some of it, and no answer came."""
        if writes:
            return OutcomeUnknown(f"{self.url} gave no answer ({why}); it may or may not have happened")
        return Unavailable(f"{self.url} gave no answer ({why}); try again", code=NO_SERVICE)

    def refusal(self, status: int, body: bytes, *, writes: bool) -> Error:
        """What an answer without success means, also where it is not the service that gave it."""
        if (told := problem.error_in(body)) is not None:
            return told if self._headers or told.code != problem.NO_CREDENTIAL else _without_key(told)
        said = _said(body)
        where = f"{self.url} answered {status}, and not as relet does: {said}"
        if status in _ASKS_WHO:
            return Forbidden(f"{where}. Something before the service asks for a credential of its own")
        if status == HTTPStatus.NOT_FOUND:
            return NotFound(f"{where}. Is this the address of a relet service")
        if status in _NOT_DONE:
            return Unavailable(f"{where}. Nothing was written, try again", code=BUSY)
        if status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return Invalid(f"{where}. Is this the address of a relet service", field="url")
        return self.unanswered(f"status {status}: {said}", writes=writes)

    def abandon(self) -> None:
        """In a forked child: none of the parent's connections, which goes on using them."""
        self._lock = threading.Lock()
        if self._client is not None:
            _INHERITED.append(self._client)
        self._client = None

    def close(self) -> None:
        """Let go of the connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            with suppress(httpx2.HTTPError):
                client.close()


_INHERITED: list[Any] = []
"""Those of a parent process: never closed here, for the sockets are shared with it."""


def _without_key(told: Error) -> Error:
    """The service cannot know where this program would have its key from."""
    return type(told)(
        f"this program has no key: set ${KEY_VARIABLE}, or name a file with it in ${FILE_VARIABLE}; the service "
        f"says: {told.message}",
        code=told.code, **told.detail,
    )  # fmt: skip


def _after_s(response: httpx2.Response) -> int | None:
    """How soon what was refused for coming too often may be sent again; None where nothing, or a date, is said."""
    told = response.headers.get("retry-after", "")
    is_read = response.status_code == HTTPStatus.TOO_MANY_REQUESTS and told.isascii() and told.isdigit()
    return max(1, int(told)) if is_read and len(told) <= _DIGITS_MAX else None


def _said(body: bytes) -> str:
    return repr(body[:_SHOWN_CHARS].decode("utf-8", "replace"))


def _word(wrong: Exception) -> str:
    return str(wrong) or type(wrong).__name__
