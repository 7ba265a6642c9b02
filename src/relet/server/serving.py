"""The service as a process: an address to listen at, and an end within seconds, with streams open."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from relet.core.border import invalid, shown
from relet.server.hosts import PORT_MAX, host_names
from relet.server.lines import CONNECTIONS_MAX, IDLE_S, line_class
from relet.server.service import Service

GRACE_S: Final = 1
"""What is under way may end by itself; streams are ended at once."""
BACKLOG: Final = 2_048


class Server(uvicorn.Server):
    """Lets those go who wait, before it waits for them."""

    def __init__(
        self, config: uvicorn.Config, service: Service, bound: socket.socket, started: Callable[[str], None] | None
    ) -> None:  # fmt: skip
        super().__init__(config)
        self.bound, self._service, self._told_started = bound, service, started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As its own, which ends by raising them once more: to end when it is told to is no failure."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._told_started is not None:
            self._told_started(address_of(self.bound))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.news.stop()
        await super().shutdown(sockets)


def serve(
    app: ASGIApp, service: Service, bound: socket.socket, started: Callable[[str], None] | None = None
) -> Server:
    """A server to be run by `run()`, which returns after a signal; `started` is told the address."""
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, date_header=False, lifespan="on", ws="none",
        timeout_graceful_shutdown=GRACE_S, timeout_keep_alive=IDLE_S, limit_concurrency=CONNECTIONS_MAX,
        proxy_headers=False, http=line_class(), loop="auto",
    )  # fmt: skip
    return Server(config, service, bound, started)


def bind(listen: tuple[str, int]) -> socket.socket:
    """Begin to listen. Raises `Invalid` where another program does, or this machine has no such address."""
    host, port = listen
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By its number: for a socket that does not name it the event loop lets small answers wait for 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((host, port))
        bound.listen(BACKLOG)
        return bound
    except (OSError, UnicodeError) as wrong:
        bound.close()
        why = getattr(wrong, "strerror", None) or str(wrong)
        raise invalid("listen", f"{host}:{port} cannot be listened at ({why}); give another address") from wrong


def address_of(listening: socket.socket) -> str:
    """What clients connect to."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen_at(text: str) -> tuple[str, int]:
    """HOST:PORT, taken apart. Raises `Invalid`."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > PORT_MAX:
        raise invalid("listen", f"{shown(text)} is not HOST:PORT; write 127.0.0.1:8787, or [::1]:8787")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Does nobody but this machine reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def run(server: Server) -> None:
    """Serve until a signal."""
    asyncio.run(server.serve([server.bound]))


def names_of(listen: tuple[str, int], others: Sequence[str]) -> list[str]:
    """The hosts that a request may name: the address, this machine's own names for it, and those that are given."""
    host, port = listen
    own = f"[{host}]" if ":" in host else host
    found = [own]
    if is_loopback(host) or host in ("0.0.0.0", "::"):  # noqa: S104 - compared, and bound only where it was asked for
        found += ["127.0.0.1", "localhost", "[::1]"]
    return [*(name for each in found for name in (each, f"{each}:{port}")), *host_names(others)]
