"""How often, and for how long, a request is tried again where another try may be luckier."""

from __future__ import annotations

import random
import time
from typing import Final

import psycopg

from relet.core.errors import Error, Unavailable
from relet.store.postgres.faults import BUSY, READ_ONLY, Retry, translated
from relet.store.postgres.pool import CLOSED
from relet.store.postgres.transact import Undone

PATIENCE_MS: Final = 10_000
PAUSE_S_MIN, PAUSE_S_MAX = 0.002, 0.1
COLLISIONS_MAX: Final = 50
OUTAGES_MAX: Final = 5
OVERTAKEN_AT_ONCE_MAX: Final = 3
STANDBY_S: Final = 3.0
"""A standby that is just being promoted, or replaced, takes writes soon; one that was named by mistake never does."""


class Tries:
    """Those of one request, until its caller's patience ends; each reason has a limit of its own."""

    def __init__(self, until: float, place: str) -> None:
        now = time.monotonic()
        self.until, self._place = until, place
        self._standby_until, self._again_until = now + STANDBY_S, now + PATIENCE_MS / 1_000
        self._pause_s = PAUSE_S_MIN
        self._collisions = self._outages = self._overtaken = 0

    @property
    def left_s(self) -> float:
        """What is left of the patience."""
        return self.until - time.monotonic()

    def overtaken(self) -> None:
        """Others changed what this is about between its look and its lock. Each of these needs another's commit."""
        self._overtaken += 1
        if self._overtaken <= OVERTAKEN_AT_ONCE_MAX:
            return
        if self.left_s <= 0:
            raise Unavailable(
                f"{self._place}: others changed what this was about again and again while it was asked; nothing was "
                "written, try again",
                code=BUSY,
            )
        self.pause()

    def out(self, *, mended: bool) -> None:
        """There was an outage; was it settled, or is the server gone again."""
        self._outages += mended
        if self._outages > OUTAGES_MAX:
            raise unsettled(self._place)
        self.pause()

    def undone(self, undone: Undone) -> None:
        """The server undid it. Raises what that means where there is no other try."""
        self._collisions += undone.retry is Retry.NOW
        self.until = min(self.until, self._again_until)
        if isinstance(undone.wrong, psycopg.errors.ReadOnlySqlTransaction):
            self.until = min(self.until, self._standby_until)
        if undone.retry is Retry.NEVER or self._collisions > COLLISIONS_MAX or self.left_s <= 0:
            raise translated(undone.wrong, self._place) from undone.wrong

    def is_over(self, wrong: Error) -> bool:
        """Is there no other try after a server that could not be reached, or was not to be written to."""
        self.until = min(self.until, self._standby_until if wrong.code == READ_ONLY else self._again_until)
        return self.left_s <= 0 or wrong.code == CLOSED

    def pause(self) -> None:
        """Somewhat longer each time, and never in step with others."""
        time.sleep(min(random.uniform(0.3, 1) * self._pause_s, max(0.0, self.left_s)))
        self._pause_s = min(PAUSE_S_MAX, self._pause_s * 1.5)


def unsettled(place: str) -> Unavailable:
    """The clock of the server does not stand still for long enough to be believed."""
    return Unavailable(
        f"{place}: the server's clock was stepped again and again while this was asked; nothing was written",
        code="RELET-CLOCK",
    )
