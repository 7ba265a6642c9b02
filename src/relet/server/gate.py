"""Who asks: the credential of a request, and where it comes from. All but two exact paths goes through here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from relet.core.access import Access, digest_of
from relet.core.errors import Error, Forbidden, Invalid
from relet.core.problem import NO_CREDENTIAL, WRONG_HOST
from relet.server.answers import problem
from relet.server.hosts import Hosts
from relet.server.rates import FAILURES, PER_KEY, Buckets, Lately, Rate, too_often

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""By exact name, never by how a path begins or ends."""
_SAFE_SITES: Final = ("same-origin", "none")


class KeyRing(Protocol):
    """The credentials there are."""

    async def who(self, key: str | None) -> Access:
        """Whose it is, as it stands now. Raises `Forbidden` for what opens nothing."""


class Gate:
    """The outermost layer: no route, method or protocol is reached beside it. `refused` hears of whom it kept out."""

    def __init__(
        self, app: ASGIApp, ring: KeyRing, hosts: Sequence[str], refused: Callable[[HTTPConnection, Error], None],
        rate: Rate = PER_KEY,
    ) -> None:  # fmt: skip
        self._app, self._ring, self._refused = app, ring, refused
        self._hosts = Hosts(hosts)
        self._asked, self._failed, self._good = Buckets(rate), Buckets(FAILURES), Lately()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There is none of ours; refused without a word of what is here.
            await send({"type": "websocket.close", "code": 1008})
            return
        connection = HTTPConnection(scope)
        try:
            self._check_way(connection)
            if scope["path"] not in OPEN_PATHS:
                access = scope["access"] = await self._let_in(connection)
                if not self._asked.take(access.key_id):
                    raise self._asks_too_often(access)
        except Error as refused:
            self._refused(connection, refused)
            await problem(refused)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _asks_too_often(self, access: Access) -> Error:
        return too_often(
            f"the key {access.name} ({access.key_id}) asks too often: beyond {self._asked.rate} for each key",
            "Ask more slowly, or serve with another limit → relet serve --rate",
            self._asked.after_s(access.key_id),
        )

    async def _let_in(self, connection: HTTPConnection) -> Access:
        """Who it is. An address that has shown many wrong keys is not looked up again, but for a key good lately."""
        address = "" if connection.client is None else connection.client.host
        name = None
        try:
            key = credential_of(connection)
            name = digest_of(key or "")
            if name not in self._good and not self._failed.has(address):
                after_s = self._failed.after_s(address)
                raise too_often("many wrong keys came from this address", "Send a good key, and more slowly", after_s)
            access = await self._ring.who(key)
        except Forbidden:
            self._failed.take(address)
            if name is not None:
                self._good.drop(name)
            raise
        self._good.add(name)
        return access

    def _check_way(self, connection: HTTPConnection) -> None:
        """A page of another site must not make a browser ask for it, under whatever name it calls this machine."""
        host = connection.headers.get("host", "")
        if not self._hosts.has(host):
            raise Invalid(
                f"Host: {host[:100]!r} is no name of this service; it answers to {self._hosts}. "
                "Add yours → relet serve --host-name NAME",
                code=WRONG_HOST, field="Host",
            )  # fmt: skip
        origin = connection.headers.get("origin")
        if origin is not None and not self._hosts.is_site(origin):
            raise Forbidden(f"Origin: {origin[:100]!r} is another site; its pages may not ask here", field="Origin")
        if connection.headers.get("sec-fetch-site", "none") not in _SAFE_SITES:
            raise Forbidden("Sec-Fetch-Site: another site's page made this request, which may not", field="Origin")


def credential_of(connection: HTTPConnection) -> str | None:
    """The key in `Authorization: Bearer …`; no cookie, no query: those end up in logs, and are sent by themselves."""
    given = connection.headers.getlist("authorization")
    if not given:
        return None
    scheme, _, key = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not key.strip():
        raise Forbidden(
            "Authorization: is not one `Bearer KEY`; send the key as `relet token create` has shown it",
            code=NO_CREDENTIAL, field="Authorization",
        )  # fmt: skip
    return key.strip()
