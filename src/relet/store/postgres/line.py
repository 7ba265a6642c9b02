"""A connection that waits for no answer for ever: a server or a network that fell silent looks like a slow one."""

from __future__ import annotations

import logging
import select
import time
from functools import cached_property
from typing import Any, Final

import psycopg
from psycopg.abc import RV, PQGen

LOOK_EVERY_S: Final = 0.1
"""How often the driver looks whether its program was interrupted."""
SILENCE_S: Final = 5.0
"""How much longer than it may take an answer is waited for, at most: then the connection is given up."""
LOCK_STEPS_MS: Final = (5_000, 2_000, 1_000, 500, 200, 100, 50, 20, 10, 5, 2, 1)
"""Few, so that a connection is seldom told anew."""
# The driver warns of each connection that is lost with something under way, and a program that has set up no log
# would find that on its stderr. What it means for the program, it is told by us.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


if hasattr(select, "poll"):

    def _readable(socket: int) -> bool:
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return bool(poll.poll(0))

else:  # pragma: no cover - a system without poll; its select knows sockets of any number

    def _readable(socket: int) -> bool:
        return bool(select.select([socket], [], [], 0)[0])


class Line(psycopg.Connection[tuple[Any, ...]]):
    """One connection. Keepalives notice a peer that is gone, and not one that is there and does not answer."""

    _lock_ms: int | None = None

    answer_by: float | None = None
    """When to give it up, by the monotonic clock; None to wait on."""
    idle_since = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.notices: list[str] = []
        """What the server has remarked since somebody began to listen."""
        self.add_notice_handler(lambda notice: self.notices.append(notice.message_primary or ""))

    @cached_property
    def hand(self) -> psycopg.Cursor[tuple[Any, ...]]:
        """A cursor for whoever asks one thing after another: making one costs as much as a small question."""
        return self.cursor()

    def wait(self, gen: PQGen[RV], interval: float = LOOK_EVERY_S, timeout: float | None = None) -> RV:
        """As the driver does it, and no longer than `answer_by`. Raises `OperationalError`, with the line closed."""
        if self.answer_by is None or timeout is not None:
            return super().wait(gen, interval, timeout)
        began = time.monotonic()
        left_s = max(0.0, self.answer_by - began)
        try:
            return super().wait(gen, interval, left_s)
        except psycopg.OperationalError as wrong:
            # The driver's own error for it has a private name; nothing else takes all of the time and has no code.
            if wrong.sqlstate is None and not self.closed and time.monotonic() - began >= left_s:
                self.close()
                raise psycopg.OperationalError(f"the server did not answer within {left_s:.1f} s") from None
            raise

    def wait_for_locks(self, milliseconds: int) -> None:
        """How long a statement may wait for a lock, from here on: so long, or somewhat less."""
        step = next(each for each in LOCK_STEPS_MS if each <= milliseconds)
        if step != self._lock_ms:
            self.hand.execute(f"SET lock_timeout = {step}")
            self._lock_ms = step

    @property
    def is_quiet(self) -> bool:
        """Has nothing come on it while it rested. What comes then tells that the server has ended it."""
        return not self.closed and not _readable(self.pgconn.socket)

    def expect_answers(self, seconds: float) -> None:
        """Whatever is asked from here on is answered in this time, and a little more; or the line is given up."""
        self.answer_by = time.monotonic() + seconds + min(SILENCE_S, seconds)
