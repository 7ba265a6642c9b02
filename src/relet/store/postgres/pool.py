"""Connections of one store: some that its callers share, and one for heartbeats alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from relet.core.errors import Unavailable
from relet.store.postgres.connect import Capabilities, Connection, configure, connect

CONNECTIONS_MAX: Final = 10
IDLE_S: Final = 300.0


class Connections:
    """Opened when they are first asked for; never shared with a forked child."""

    def __init__(
        self, conninfo: str, place: str, can: Capabilities, *, durable: bool = True, most: int = CONNECTIONS_MAX
    ) -> None:  # fmt: skip
        self.conninfo, self.place = conninfo, place
        self._can, self._durable, self._most = can, durable, most
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._closed = False

    @contextlib.contextmanager
    def borrowed(self, seconds: float) -> Iterator[Connection]:
        """One connection for a block. Raises `Unavailable`, with the reason, when there is none in time."""
        pool = self._opened()
        try:
            connection = pool.getconn(timeout=max(0.05, seconds))
        except (PoolTimeout, TooManyRequests) as wrong:
            raise self._why(wrong) from wrong
        except PoolClosed as wrong:
            raise closed() from wrong
        try:
            yield connection
        finally:
            pool.putconn(connection)

    def close(self) -> None:
        """Let go of them; asking for one raises from now on."""
        with self._lock:
            self._closed, pool, self._pool = True, self._pool, None
        if pool is not None:
            pool.close(timeout=1.0)

    def abandon(self) -> None:
        """In a forked child: none of the parent's, which goes on using them."""
        self._lock = threading.Lock()
        if self._pool is not None:
            _INHERITED.append(self._pool)
        self._pool = None

    def forget_broken(self) -> None:
        """After a failure that may concern all: look at each that is idle, before somebody gets it."""
        if self._pool is not None:
            with contextlib.suppress(psycopg.Error, PoolClosed):
                self._pool.check()

    def _opened(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._closed:
                raise closed()
            if self._pool is None:
                self._pool = ConnectionPool(
                    self.conninfo, min_size=1, max_size=self._most, max_idle=IDLE_S, num_workers=1, open=True,
                    reconnect_timeout=1.0, timeout=5.0,
                    kwargs={"autocommit": True, "cursor_factory": psycopg.RawCursor},
                    configure=lambda connection: configure(connection, self._can, durable=self._durable),
                )  # fmt: skip
            return self._pool

    def _why(self, wrong: Exception) -> Exception:
        """The pool tells nobody why it has none: find out."""
        try:
            connect(self.conninfo, self.place).close()
        except Exception as why:  # noqa: BLE001 - one of ours, with its words
            return why
        return Unavailable(
            f"{self.place}: all {self._most} connections of this client stayed in use ({wrong}); nothing was "
            "written, try again",
            code="RELET-BUSY",
        )


_INHERITED: list[Any] = []
"""Pools of a parent process: never closed here, for the sockets are shared with it."""


def closed() -> Unavailable:
    """The client was closed before."""
    return Unavailable("this client is closed; connect again", code="RELET-CLOSED")
