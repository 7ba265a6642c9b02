"""A connection that waits for no answer for ever: a server or a network that fell silent looks like a slow one."""

from __future__ import annotations

import contextlib
import logging
import select
import time
from functools import cached_property
from typing import Any, Final

import psycopg
from psycopg.abc import RV, PQGen

from relet.store.postgres.faults import Notice
from relet.store.postgres.reaching import Reaching

LOOK_EVERY_S: Final = 0.1
"""How often the driver looks whether its program was interrupted."""
SILENCE_S: Final = 5.0
"""How much longer than it may take an answer is waited for, at most: then the connection is given up."""
LOCK_STEPS_MS: Final = (5_000, 2_000, 1_000, 500, 200, 100, 50, 20, 10, 5, 2, 1)
"""Few, so that a connection is seldom told anew."""
BOUNDS_FROM: Final = 170_000


class _OfOurs(logging.Filter):
    """The driver warns of each connection that is lost with something under way.

    What that means for a program, it is told by us; of connections of its own it goes on hearing.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        given = record.args if isinstance(record.args, tuple) else ()
        return not any(isinstance(getattr(one, "_conn", one), Line) for one in given)


logging.getLogger("psycopg").addFilter(_OfOurs())


if hasattr(select, "poll"):

    def _readable(socket: int) -> bool:
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return bool(poll.poll(0))

else:  # pragma: no cover - a system without poll; its select knows sockets of any number

    def _readable(socket: int) -> bool:
        return bool(select.select([socket], [], [], 0)[0])


class Synced(psycopg.RawCursor[tuple[Any, ...]]):
    """Ends each statement of a pipeline with a Sync, for which nobody waits.

    Without one the server takes whoever sends no more for busy, and not for idle within its transaction.
    """

    def _maybe_prepare_gen(self, *args: Any, **named: Any) -> PQGen[None]:
        yield from super()._maybe_prepare_gen(*args, **named)
        if (pipeline := self.connection._pipeline) is not None:  # noqa: SLF001 - its own sync() would wait
            pipeline._enqueue_sync()  # noqa: SLF001


class Line(Reaching):
    """One connection. Keepalives notice a peer that is gone, and not one that is there and does not answer."""

    _lock_ms: int | None = None

    silent_since: float | None = None
    """When that was asked which the server did not answer; the line was given up for it."""
    answer_by: float | None = None
    """When to give it up, by the monotonic clock; None to wait on."""
    idle_since = 0.0
    opened_in_s = 0.0
    """How long it took to be opened: several times to the server and back."""
    most_s: float | None = None
    """How long a transaction may take, where that has to be said in each; None where the session knows it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.notices: list[Notice] = []
        """What the server has remarked since somebody began to listen."""
        self.add_notice_handler(lambda said: self.notices.append(
            Notice(said.sqlstate, said.severity_nonlocalized, said.source_function)
        ))  # fmt: skip

    @cached_property
    def hand(self) -> psycopg.Cursor[tuple[Any, ...]]:
        """A cursor for whoever asks one thing after another: making one costs as much as a small question."""
        return self.cursor()

    def wait(self, gen: PQGen[RV], interval: float = LOOK_EVERY_S, timeout: float | None = None) -> RV:
        """As the driver does it, and no longer than `answer_by`. Raises `OperationalError`, with the line closed."""
        if self.silent_since is not None:
            # Its pipeline would say goodbye, to nobody.
            _abandon(gen)
            raise psycopg.OperationalError("the connection is closed")
        if self.answer_by is None or timeout is not None:
            return super().wait(gen, interval, timeout)
        began = time.monotonic()
        left_s = max(0.0, self.answer_by - began)
        try:
            return super().wait(gen, interval, left_s)
        except psycopg.OperationalError as wrong:
            # The driver's own error for it has a private name; nothing else takes all of the time and has no code.
            if wrong.sqlstate is None and not self.closed and time.monotonic() - began >= left_s:
                self.silent_since = began
                self.close()
                _abandon(gen)
                raise psycopg.OperationalError(f"the server did not answer within {left_s:.1f} s") from None
            raise

    def wait_for_locks(self, milliseconds: int) -> None:
        """How long a statement may wait for a lock, from here on: so long, or somewhat less."""
        step = next(each for each in LOCK_STEPS_MS if each <= milliseconds)
        if step != self._lock_ms:
            self.hand.execute(f"SET lock_timeout = {step}")
            self._lock_ms = step

    @property
    def bounded_by(self) -> str:
        """The setting by which a server ends who is in a transaction for too long; an old one: who is idle in it."""
        return "transaction_timeout" if self.bounds_all else "idle_in_transaction_session_timeout"

    @cached_property
    def bounds_all(self) -> bool:
        """Does the server bound all of a transaction, whatever it waits for."""
        return self.info.server_version >= BOUNDS_FROM

    @property
    def is_quiet(self) -> bool:
        """Has nothing come on it while it rested. What comes then tells that the server has ended it."""
        return not self.closed and not _readable(self.pgconn.socket)

    def is_stale(self, seconds: float) -> bool:
        """Has it rested for longer than that, or been ended meanwhile."""
        return time.monotonic() - self.idle_since > seconds or not self.is_quiet

    def expect_answers(self, seconds: float, least_s: float = 0.0) -> None:
        """Whatever is asked from here on is answered in this time, and a little more; or the line is given up.

        `least_s` is for the way there and back, however little patience somebody has.
        """
        self.answer_by = time.monotonic() + max(least_s, seconds + min(SILENCE_S, seconds))


def _abandon(gen: PQGen[Any]) -> None:
    """End what nobody waits for any more. Left to the collector, what it says of it would come out on stderr."""
    with contextlib.suppress(psycopg.Error, RuntimeError):
        gen.close()
