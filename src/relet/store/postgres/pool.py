"""Connections of one store: some that its callers share, and one for heartbeats alone.

Who needs one opens it, in its own thread, and so learns at once why there is none; who has to wait is served in the
order of coming. No thread of the pool's own can get stuck, or be gone after a fork.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus

from relet.core.errors import Unavailable
from relet.store.postgres.connect import LOCK_MS_MAX, Capabilities, configure, connect
from relet.store.postgres.faults import BUSY, unreachable
from relet.store.postgres.line import Line
from relet.store.postgres.place import CONNECT_S

CONNECTIONS_MAX: Final = 10
IDLE_S: Final = 300.0
"""What was not used for so long is closed: on its way somebody may have forgotten it."""
WAIT_S_MIN: Final = 0.05
CLOSED: Final = "RELET-CLOSED"
ANSWER_S: Final = LOCK_MS_MAX / 1_000
"""For as long as somebody may wait for a row."""
ANSWER_S_MIN: Final = 2.0
BEAT_S_MIN: Final = 1.0
WAYS: Final = 10
"""So many times as long as it took to open a connection an answer may take."""


class Waiter:
    """Somebody who waits, and what it is given: a connection, or the place of one that it may open; or the end."""

    def __init__(self) -> None:
        self.given: Line | None = None
        self.is_served = self.is_sent_away = False
        self._served = threading.Event()

    def serve(self, given: Line | None) -> None:
        self.given, self.is_served = given, True
        self._served.set()

    def send_away(self) -> None:
        """With nothing, not even the place of a connection."""
        self.is_sent_away = True
        self.serve(None)

    def wait(self, seconds: float) -> None:
        self._served.wait(seconds)


class Connections:
    """Opened when they are first asked for; never shared with a forked child."""

    def __init__(
        self, conninfo: str, place: str, can: Capabilities, *, durable: bool = True, most: int = CONNECTIONS_MAX,
        instead: Connections | None = None,
    ) -> None:  # fmt: skip
        self.conninfo, self.place = conninfo, place
        self._can, self._durable, self._most = can, durable, most
        self._instead = instead
        """One of theirs that rests is lent where none can be opened here."""
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._idle: deque[Line] = deque()
        """The one that was used last is taken first; those to the left rest for longer."""
        self._waiting: deque[Waiter] = deque()
        self._places = 0
        """How many connections there are, or are being opened."""

    @contextlib.contextmanager
    def borrowed(
        self, seconds: float, answer_s: float = ANSWER_S, lock_ms: int = LOCK_MS_MAX, more_s: float = 0.0
    ) -> Iterator[Line]:  # fmt: skip
        """One connection for a block. Raises `Unavailable`, with the reason, when there is none in time.

        What the block asks is answered within `answer_s`, or less where its caller is in a hurry, and never less than
        the way takes; and `more_s` for what is sent on it. A statement of it waits for a lock for `lock_ms` at most,
        where sessions are our own.
        """
        pool, connection = self._found(max(WAIT_S_MIN, seconds))
        usual_s = max(WAIT_S_MIN, min(seconds, answer_s))
        connection.expect_answers(usual_s + more_s, self._least_s(connection) + more_s)
        try:
            if self._can.own_session:
                self._bound_locks(connection, lock_ms)
            yield connection
        finally:
            pool._give_back(connection)  # noqa: SLF001 - to whom it belongs

    def _least_s(self, connection: Line) -> float:
        """However little patience there is, the server is as far away as it is, and stumbles now and then."""
        if self._durable:
            return ANSWER_S_MIN
        # A beat that is not answered is to be sent again before its lease ends, which may be a short one.
        return min(BEAT_S_MIN, WAYS * connection.opened_in_s)

    def _bound_locks(self, connection: Line, lock_ms: int) -> None:
        try:
            connection.wait_for_locks(lock_ms)
        except psycopg.Error as wrong:
            connection.close()
            raise unreachable(wrong, self.place) from wrong

    def close(self) -> None:
        """Let go of them; asking for one raises from now on."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, deque()
            for waiter in waiting:
                waiter.send_away()
        self.forget_broken()

    def abandon(self) -> None:
        """In a forked child: none of the parent's, which goes on using them."""
        _INHERITED.append(self._idle)
        self._begin()

    def forget_broken(self) -> None:
        """After a failure that may concern all: those that rest are not trusted any more."""
        with self._lock:
            idle, self._idle = self._idle, deque()
            self._places -= len(idle)
        for connection in idle:
            connection.close()

    @property
    def open(self) -> int:
        """How many there are."""
        return self._places

    # -- taking and giving ---------------------------------------------------------------------------------------

    def _found(self, seconds: float) -> tuple[Connections, Line]:
        try:
            return self, self._take(seconds)
        except Unavailable as wrong:
            other = None if wrong.code in (BUSY, CLOSED) else self._instead
            if other is None or (spare := other._spare()) is None:  # noqa: SLF001
                raise
            return other, spare

    def _spare(self) -> Line | None:
        """One that rests, if there is one."""
        with self._lock:
            found = self._idle.pop() if self._idle else None
        if found is not None and found.is_stale(IDLE_S):
            found.close()
            self._give_on(None)
            return None
        return found

    def _take(self, seconds: float) -> Line:
        with self._lock:
            if self._closed:
                raise closed()
            found = self._idle.pop() if self._idle else None
            waiter = None
            if found is None:
                if self._places < self._most:
                    self._places += 1
                else:
                    waiter = Waiter()
                    self._waiting.append(waiter)
        if waiter is not None:
            found = self._wait(waiter, seconds)
        if found is not None and found.is_stale(IDLE_S):
            found.close()
            found = None
        return found if found is not None else self._open()

    def _wait(self, waiter: Waiter, seconds: float) -> Line | None:
        try:
            waiter.wait(seconds)
        except BaseException:
            # Interrupted: what it was given in this instant is given on.
            if not self._leave(waiter) and not waiter.is_sent_away:
                self._give_on(waiter.given)
            raise
        if self._leave(waiter):
            raise Unavailable(
                f"{self.place}: all {self._most} connections of this client stayed in use for {seconds:.1f} s; "
                "nothing was written, try again",
                code=BUSY,
            )
        if self._closed:
            if not waiter.is_sent_away:
                self._give_on(waiter.given)
            raise closed()
        return waiter.given

    def _leave(self, waiter: Waiter) -> bool:
        """Wait no longer; False for who was served meanwhile."""
        with self._lock:
            if waiter.is_served:
                return False
            self._waiting.remove(waiter)
            return True

    def _open(self) -> Line:
        began = time.monotonic()
        try:
            connection = connect(self.conninfo, self.place)
            try:
                connection.expect_answers(CONNECT_S)
                configure(connection, self._can, durable=self._durable)
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as wrong:
            self._give_on(None)
            raise unreachable(wrong, self.place) from wrong
        except BaseException:
            self._give_on(None)
            raise
        connection.opened_in_s = time.monotonic() - began
        return connection

    def _give_back(self, connection: Line) -> None:
        """To who waits, or to rest; one that is not as it was taken is closed."""
        is_usable = not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE
        if not is_usable or self._closed:
            connection.close()
        connection.answer_by = None
        connection.idle_since = time.monotonic()
        self._give_on(None if connection.closed else connection)

    def _give_on(self, given: Line | None) -> None:
        """A connection, or the place of one."""
        stale: list[Line] = []
        with self._lock:
            if self._waiting:
                self._waiting.popleft().serve(given)
            elif given is None or self._closed:
                self._places -= 1
                stale += [given] if given is not None else []
            else:
                self._idle.append(given)
                while given.idle_since - self._idle[0].idle_since > IDLE_S:
                    stale.append(self._idle.popleft())
                    self._places -= 1
        for connection in stale:
            connection.close()


_INHERITED: list[Any] = []
"""Those of a parent process: never closed here, for the sockets are shared with it."""


def closed() -> Unavailable:
    """The client was closed before."""
    return Unavailable("this client is closed; connect again", code=CLOSED)
