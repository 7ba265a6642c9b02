"""One waiter for what others commit, where a process is told of it over one line for all of its waiters."""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from typing import Final

LOOK_UNTOLD_S: Final = 0.2
"""How often to look where nobody tells; jittered, so that many processes do not march in step."""
LOOK_ANYWAY_S: Final = 1.0
"""And where somebody does: a line that was cut without a word tells nothing either."""


class Teller(ABC):
    """What a process is told of commits, over a line that somebody listens at."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.changed = threading.Condition()
        self.version = 0
        """Grows when somebody has committed, as far as this process was told."""
        self.is_told = False
        """Is the line up."""
        self.silent_since: float | None = None
        """Since when nothing proves it, by time.monotonic; None before one listens, and where nobody would tell."""
        self._over = threading.Event()
        self._starting = threading.Lock()

    @abstractmethod
    def hear(self) -> None:
        """Begin to listen."""

    def note(self) -> None:
        """Somebody has committed: whoever waits looks now."""
        with self.changed:
            self.version += 1
            self.changed.notify_all()

    def abandon(self) -> None:
        """In a forked child: none of the parent's threads is here."""
        self._begin()


class Watch:
    """One waiter for commits of others; it may be woken by any thread, also before it waits."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        self._seen = -1
        self._awake = False
        teller.hear()

    @property
    def silent_since(self) -> float | None:
        """As the teller says."""
        return self._teller.silent_since

    def wait(self, seconds: float) -> bool:
        """Return when somebody else may have committed since the last look, when woken, or False after `seconds`."""
        teller = self._teller
        until = time.monotonic() + seconds
        look_s = LOOK_ANYWAY_S if teller.is_told else LOOK_UNTOLD_S
        look_at = time.monotonic() + random.uniform(0.7, 1.0) * look_s
        with teller.changed:
            while True:
                if self._awake or teller.version != self._seen:
                    self._awake, self._seen = False, teller.version
                    return True
                now = time.monotonic()
                if now >= look_at:
                    return True
                if now >= until:
                    return False
                teller.changed.wait(min(until, look_at) - now)

    def pause(self, seconds: float) -> bool:
        """Look at nothing; return when woken, at the latest after `seconds`, and say whether it was."""
        with self._teller.changed:
            self._teller.changed.wait_for(lambda: self._awake, seconds)
            was, self._awake = self._awake, False
            return was

    def wake(self) -> None:
        """End the wait, or the next one, at once."""
        with self._teller.changed:
            self._awake = True
            self._teller.changed.notify_all()

    def close(self) -> None:
        """Nobody waits any more."""
