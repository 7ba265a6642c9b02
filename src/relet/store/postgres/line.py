"""A connection that waits for no answer for ever: a server or a network that fell silent looks like a slow one."""

from __future__ import annotations

import logging
import select
import time
from typing import Any, Final

import psycopg
from psycopg.abc import RV, PQGen

LOOK_EVERY_S: Final = 0.1
"""How often the driver looks whether its program was interrupted."""
SILENCE_S: Final = 5.0
"""How much longer than it may take an answer is waited for, at most: then the connection is given up."""
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

    answer_by: float | None = None
    """When to give it up, by the monotonic clock; None to wait on."""
    idle_since = 0.0

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

    @property
    def is_quiet(self) -> bool:
        """Has nothing come on it while it rested. What comes then tells that the server has ended it."""
        return not self.closed and not _readable(self.pgconn.socket)

    def expect_answers(self, seconds: float) -> None:
        """Whatever is asked from here on is answered in this time, and a little more; or the line is given up."""
        self.answer_by = time.monotonic() + seconds + min(SILENCE_S, seconds)
