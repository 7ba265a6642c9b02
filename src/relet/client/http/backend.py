"""The narrow waist over HTTP: a request is sent, its answer is read, and one whose answer was lost is sent again."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec

from relet.client.http.address import checked, credential
from relet.client.http.line import FIRST_S, Line, Span
from relet.client.http.news import News
from relet.core.again import surely
from relet.core.backend import OwnTransaction
from relet.core.bond import Bond
from relet.core.errors import Invalid
from relet.core.operation import operation_of
from relet.core.rules.audit import AuditEntry, ListAudit
from relet.core.rules.release import Release
from relet.core.rules.renew import Renew
from relet.core.whoami import API, PATIENCE, PREFIX, Whoami
from relet.core.wire import decode_answer, encode
from relet.noticing import Watch

if TYPE_CHECKING:
    from relet.core.upkeep import BackedUp, Verified

A = TypeVar("A")

OF_KEEPER: Final = (Renew, Release)
"""Asked by who keeps leases: it must be back before the next of them has its deadline, answered or not."""
SHARE_OF_STORE: Final = 0.4
"""Of the time that such a request has in all: the rest is for the way."""


class HttpBackend:
    """Answers requests by a service. Heartbeats have connections of their own: no upload keeps them waiting."""

    answers_side_by_side: Final = False
    """A worker's results and its next claim go in one request: the way is longer than the work."""

    def __init__(self, url: str, tenant: str | None = None, *, key: str | None = None) -> None:
        self.url = checked(url)
        given = key if key is not None else credential()
        self.line, self._beats = Line(self.url, given), Line(self.url, given)
        self._news = News(self.line)
        try:
            self.who = self._introduced(tenant)
        except BaseException:
            self.line.close()
            raise
        self.tenant = self.who.tenant
        self._looks = threading.local()
        _OPEN.add(self)

    def _introduced(self, tenant: str | None) -> Whoami:
        body = self.line.ask("GET", f"{PREFIX}/whoami", writes=False, span=Span.within(FIRST_S)).content
        found = self._read(body, msgspec.json.Decoder(Whoami).decode)
        if found.api > API:
            raise Invalid(
                f"url: {self.url} speaks version {found.api} of the interface, and this relet {API}; upgrade it here "
                f"to {found.version} or later",
                field="url",
            )
        if tenant not in (None, found.tenant):
            raise Invalid(
                f"tenant: the credential is of {found.tenant!r}, not of {tenant!r}; leave it out, or use a key of "
                "that tenant → relet token create NAME --tenant TENANT",
                field="tenant",
            )
        return found

    @property
    def place(self) -> str:
        """The address of the service."""
        return self.url

    def call(self, ask: Any, *, patience_ms: int | None = None) -> Any:
        """The answer to one request."""
        return surely(lambda asked: self._once(asked, patience_ms), ask)

    def _once(self, ask: Any, patience_ms: int | None) -> Any:
        operation = operation_of(type(ask))
        headers, span = {"Content-Type": "application/json"}, Span.usual()
        if patience_ms is not None:
            is_hasty = type(ask) in OF_KEEPER
            headers[PATIENCE] = str(int(patience_ms * SHARE_OF_STORE) if is_hasty else patience_ms)
            seconds = patience_ms / 1_000
            span = Span.within(seconds) if is_hasty else Span.usual(seconds)
        response = self._line_for(ask).ask(
            "POST",
            f"{PREFIX}/{operation.name}",
            writes=operation.writes,
            span=span,
            content=encode(ask),
            headers=headers,
        )
        if operation.writes:
            self._news.note()
        return self._read(response.content, partial(decode_answer, operation), writes=operation.writes)

    def audit(self, ask: ListAudit) -> list[AuditEntry]:
        """A page of the audit log of the credential's tenant, and of no other."""
        given = {"before": ask.before, "after": ask.after, "limit": ask.limit}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        body = self.line.ask("GET", f"{PREFIX}/audit?{query}", writes=False).content
        return self._read(body, msgspec.json.Decoder(list[AuditEntry]).decode)

    def _read(self, body: bytes, decode: Callable[[bytes], A], *, writes: bool = False) -> A:
        try:
            return decode(body)
        except msgspec.MsgspecError as wrong:
            raise self.line.unreadable(body, writes=writes) from wrong

    def _line_for(self, ask: Any) -> Line:
        return self._beats if type(ask) is Renew else self.line

    def call_within(self, transaction: Any, ask: Any) -> Any:  # noqa: ARG002 - of the port
        """A transaction of the user's own is on the database, which only the service reaches."""
        raise self._far_away("tx")

    def transaction(self, seconds: float) -> AbstractContextManager[OwnTransaction]:  # noqa: ARG002 - of the port
        """As above."""
        raise self._far_away("transaction")

    def _far_away(self, field: str) -> Invalid:
        return Invalid(
            f"{field}: {self.url} is a service, and a transaction of your own needs the database itself; connect to "
            "that (sqlite:///… or postgresql://…), or use an effect",
            field=field,
        )

    def bind(self) -> Bond | None:
        """Nothing on this machine proves to a service that a process has ended: the ttl decides."""
        return None

    def vouch(self, lock: str) -> None:
        """Nothing is bound to a process here."""

    def bury(self) -> int:
        """Nobody is proven to be dead here."""
        return 0

    def wait_for_change(self, seconds: float) -> None:
        """Return when somebody may have committed, at the latest after `seconds`."""
        if not hasattr(self._looks, "watch"):
            self._looks.watch = self.watch()
        self._looks.watch.wait(seconds)

    def watch(self) -> Watch:
        """A waiter of its own for a thread."""
        return Watch(self._news)

    def verify(self, exists: Callable[[str], bool] | None = None) -> Verified:  # noqa: ARG002 - of the port
        """Looked after where the store is."""
        raise self._at_home("verify")

    def backup(self, to: str, exists: Callable[[str], bool] | None = None) -> BackedUp:  # noqa: ARG002 - of the port
        """As above."""
        raise self._at_home("backup")

    def _at_home(self, verb: str) -> Invalid:
        return Invalid(
            f"url: {self.url} is a service; {verb} needs the store itself. Run it where the service runs → "
            f"relet {verb} --url sqlite:///…",
            field="url",
        )

    def after_fork_in_child(self) -> None:
        """Connections and threads of its own."""
        self.line.abandon()
        self._beats.abandon()
        self._news.abandon()

    def close(self) -> None:
        """Let go of the connections."""
        self._news.close()
        self.line.close()
        self._beats.close()
        _OPEN.discard(self)


_OPEN: weakref.WeakSet[HttpBackend] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for backend in list(_OPEN):
        backend.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
