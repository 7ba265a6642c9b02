"""What keeps a worker from its store, said when it begins and now and then while it lasts, not at each try."""

from __future__ import annotations

import time
from typing import Final

from relet.core.errors import Error
from relet.worker.logs import log

AGAIN_S: Final = 10.0
"""How often the same trouble is said while it lasts: a worker tries many times a second."""


class Trouble:
    """Belongs to the supervisor's thread."""

    def __init__(self) -> None:
        self._said_at: dict[tuple[str, str], float] = {}

    def is_news(self, what: str, wrong: Error) -> bool:
        """Has this not been said of late."""
        now = time.monotonic()
        if now < self._said_at.get((what, wrong.code), 0.0):
            return False
        self._said_at[what, wrong.code] = now + AGAIN_S
        return True

    def warn(self, what: str, wrong: Error) -> None:
        """Log what could not be done, and why, if that is news."""
        if self.is_news(what, wrong):
            log.warning("%s: %s", what, wrong)

    def over(self) -> None:
        """The store has answered: whatever comes now is news."""
        if self._said_at:
            self._said_at.clear()
            log.info("the store answers again")
