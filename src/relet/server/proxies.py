"""Whom a request comes from where proxies stand between: by the word of those that are named, and of nobody else."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from relet.core.border import invalid, shown

EVERYBODY: Final = "*"
_PEER: Final = "relet.peer"


def trusted(given: Sequence[str]) -> list[str]:
    """Proxies as they were given. Raises `Invalid` for what is no address or network, and for all there are."""
    for text in given:
        if text == EVERYBODY:
            raise _too_many(text)
        try:
            network = ipaddress.ip_network(text)
        except ValueError as wrong:
            way = "give it once for each" if "," in text else "write what the service sees the proxy at"
            raise invalid(
                "proxy",
                f"{shown(text)} is no address and no network ({wrong}); {way}, such as 127.0.0.1, "
                "fd00::7 or 10.1.0.0/16",
            ) from wrong
        if network.prefixlen == 0:
            raise _too_many(text)
    return list(given)


def _too_many(text: str) -> Exception:
    return invalid(
        "proxy",
        f"{shown(text)} is everybody, and then each client says itself where it comes from, in the audit log and "
        "where wrong keys are counted; name the proxies, such as 127.0.0.1 or 10.1.0.0/16",
    )


class Behind:
    """The outermost layer: what is within sees the client's address in place of the proxy's."""

    def __init__(self, app: ASGIApp, proxies: Sequence[str]) -> None:
        self._app = app
        within: Any = self._named
        self._told: Any = ProxyHeadersMiddleware(within, list(proxies))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:
            await self._told({**scope, _PEER: scope.get("client")}, receive, send)

    async def _named(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A header holds any text, of any length; what is no address in it says nothing of where it comes from."""
        client, peer = scope.get("client"), scope.pop(_PEER)
        if client is not None and client != peer:
            address = _address(client[0])
            scope["client"] = peer if address is None else (address, client[1])
        await self._app(scope, receive, send)


def _address(text: str) -> str | None:
    """In its one spelling, by which it is counted. The zone of an IPv6 one is any text, and means nothing here."""
    if "%" in text:
        return None
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return str(getattr(found, "ipv4_mapped", None) or found)
