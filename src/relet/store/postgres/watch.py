"""Notice that somebody else has committed: told of by the server where sessions are our own, looked for elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Final

import psycopg

from relet.core.errors import Error
from relet.noticing import Teller
from relet.store.postgres.connect import connect
from relet.store.postgres.line import Line

TELL_EVERY_S: Final = 0.02
"""At most so often a process tells the others, once for all that it committed meanwhile."""
LISTEN_AGAIN_S: Final = 1.0
ALIVE_EVERY_S: Final = 10.0
"""How often one that listens asks whether anybody is still there: a line that fell silent looks like no news."""
ALIVE_S: Final = 2.5
"""How long the server may take to answer it, and then as long again."""


class Herald(Teller):
    """Tells other processes that something was committed here, and is told by them; threads begin with their use."""

    def __init__(self, conninfo: str, place: str, channel: str, *, listens: bool) -> None:
        self._conninfo, self._place, self._channel = conninfo, place, channel
        self.listens = listens
        super().__init__()

    def _begin(self) -> None:
        super()._begin()
        self._own_pid: int | None = None
        """Of the session that tells: who waits here was told before it."""
        self._news = threading.Event()
        self._telling: threading.Thread | None = None
        self._hearing: threading.Thread | None = None

    def tell(self) -> None:
        """Something was committed: waiters of this process look now, those of others when they are told."""
        self.note()
        if self.listens and not self._over.is_set():
            self._news.set()
            if self._telling is None:
                self._start("_telling", self._tell_others)

    def hear(self) -> None:
        """Begin to listen."""
        if self.listens and self._hearing is None and not self._over.is_set():
            self.silent_since = time.monotonic()
            self._start("_hearing", self._listen)

    def turn_to(self, channel: str) -> None:
        """Tell and hear the clients of another store from now on."""
        self._channel = channel

    def close(self) -> None:
        """Nobody tells or hears any more."""
        self._over.set()
        self._news.set()
        with self.changed:
            self.changed.notify_all()
        for thread in (self._telling, self._hearing):
            if thread is not None and thread is not threading.current_thread():
                thread.join(2.0)

    def _start(self, name: str, target: object) -> None:
        with self._starting:
            if getattr(self, name) is None:
                thread = threading.Thread(target=target, name=f"relet{name}", daemon=True)  # type: ignore[arg-type]
                setattr(self, name, thread)
                thread.start()

    def _tell_others(self) -> None:
        over, news = self._over, self._news
        connection: Line | None = None
        while not over.is_set():
            news.wait()
            news.clear()
            if over.is_set():
                break
            try:
                connection = connection or connect(self._conninfo, self._place)
                connection.expect_answers(ALIVE_S)
                self._own_pid = connection.info.backend_pid
                connection.hand.execute("SELECT pg_notify($1, '')", [self._channel])
            except (psycopg.Error, Error):
                # They look anyway, within a second.
                if connection is not None:
                    connection.close()
                connection = self._own_pid = None
                over.wait(LISTEN_AGAIN_S)
            over.wait(TELL_EVERY_S)
        if connection is not None:
            connection.close()

    def _listen(self) -> None:
        over = self._over
        while not over.is_set():
            with contextlib.suppress(psycopg.Error, Error), connect(self._conninfo, self._place) as connection:
                connection.expect_answers(ALIVE_S)
                channel = self._channel
                connection.execute(f"LISTEN {channel}")
                self.is_told, self.silent_since = True, time.monotonic()
                self._hear_on(connection, channel)
            self.is_told = False
            over.wait(LISTEN_AGAIN_S)

    def _hear_on(self, connection: Line, channel: str) -> None:
        alive_at = time.monotonic()
        while not self._over.is_set() and channel == self._channel:
            self._take(connection)
            if time.monotonic() - alive_at > ALIVE_EVERY_S:
                connection.expect_answers(ALIVE_S)
                connection.execute("SELECT 1")
                self.silent_since = alive_at = time.monotonic()

    def _take(self, connection: Line) -> None:
        for told in connection.notifies(timeout=0.5, stop_after=1):
            self.silent_since = time.monotonic()
            if told.pid == self._own_pid:
                continue
            self.note()
