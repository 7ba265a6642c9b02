"""Notice that somebody else has committed: told of by the server where sessions are our own, looked for elsewhere."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import Final

import psycopg

from relet.core.errors import Error
from relet.store.postgres.connect import connect
from relet.store.postgres.line import Line

LOOK_UNTOLD_S: Final = 0.2
"""How often to look where nobody tells; jittered, so that many processes do not march in step."""
LOOK_ANYWAY_S: Final = 1.0
"""And where the server tells: a connection that was cut without a word tells nothing either."""
TELL_EVERY_S: Final = 0.02
"""At most so often a process tells the others, once for all that it committed meanwhile."""
LISTEN_AGAIN_S: Final = 1.0
ALIVE_EVERY_S: Final = 10.0
"""How often one that listens asks whether anybody is still there: a line that fell silent looks like no news."""
ALIVE_S: Final = 2.5
"""How long the server may take to answer it, and then as long again."""


class Herald:
    """Tells other processes that something was committed here, and is told by them; threads begin with their use."""

    def __init__(self, conninfo: str, place: str, channel: str, *, listens: bool) -> None:
        self._conninfo, self._place, self._channel = conninfo, place, channel
        self.listens = listens
        self._begin()

    def _begin(self) -> None:
        self.changed = threading.Condition()
        self.version = 0
        """Grows when somebody else has committed, as far as this process was told."""
        self.is_told = False
        """Is a listening connection up."""
        self._own_pid: int | None = None
        """Of the session that tells: who waits here was told before it."""
        self._news = threading.Event()
        self._over = threading.Event()
        self._starting = threading.Lock()
        self._telling: threading.Thread | None = None
        self._hearing: threading.Thread | None = None

    def tell(self) -> None:
        """Something was committed: waiters of this process look now, those of others when they are told."""
        with self.changed:
            self.version += 1
            self.changed.notify_all()
        if self.listens and not self._over.is_set():
            self._news.set()
            if self._telling is None:
                self._start("_telling", self._tell_others)

    def hear(self) -> None:
        """Begin to listen."""
        if self.listens and self._hearing is None and not self._over.is_set():
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

    def abandon(self) -> None:
        """In a forked child: none of the parent's threads is here."""
        self._begin()

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
                self.is_told = True
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
                alive_at = time.monotonic()

    def _take(self, connection: Line) -> None:
        for told in connection.notifies(timeout=0.5, stop_after=1):
            if told.pid == self._own_pid:
                continue
            with self.changed:
                self.version += 1
                self.changed.notify_all()


class Watch:
    """One waiter for commits of others; it may be woken by any thread, also before it waits."""

    def __init__(self, herald: Herald) -> None:
        self._herald = herald
        self._seen = -1
        self._awake = False
        herald.hear()

    def wait(self, seconds: float) -> bool:
        """Return when somebody else may have committed since the last look, when woken, or False after `seconds`."""
        herald = self._herald
        until = time.monotonic() + seconds
        look_s = LOOK_ANYWAY_S if herald.is_told else LOOK_UNTOLD_S
        look_at = time.monotonic() + random.uniform(0.7, 1.0) * look_s
        with herald.changed:
            while True:
                if self._awake or herald.version != self._seen:
                    self._awake, self._seen = False, herald.version
                    return True
                now = time.monotonic()
                if now >= look_at:
                    return True
                if now >= until:
                    return False
                herald.changed.wait(min(until, look_at) - now)

    def pause(self, seconds: float) -> bool:
        """Look at nothing; return when woken, at the latest after `seconds`, and say whether it was."""
        with self._herald.changed:
            self._herald.changed.wait_for(lambda: self._awake, seconds)
            was, self._awake = self._awake, False
            return was

    def wake(self) -> None:
        """End the wait, or the next one, at once."""
        with self._herald.changed:
            self._awake = True
            self._herald.changed.notify_all()

    def close(self) -> None:
        """Nobody waits any more."""
