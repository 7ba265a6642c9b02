"""Store time on a server: its own clock, and what is added to it since that was seen to be stepped.

A client cannot read the server's clock without asking, but it can tell how long it was between two answers by a clock
of its own that no step moves. When the two disagree by seconds, the server's was stepped.
"""

from __future__ import annotations

import threading
import time
from typing import Final, NamedTuple, Protocol

from relet.core.model import Instants

STEP_MS: Final = 2_000
"""Less than this is taken for a slow answer, or for a clock that is being slewed."""
_COUNTS_SUSPEND: Final = getattr(time, "CLOCK_BOOTTIME", None)


class Reading(NamedTuple):
    """Store time lay between these two bounds when the client's own clock stood at `elapsed_ms`."""

    least_ms: float
    most_ms: float
    elapsed_ms: float
    steps: int


class StoreClock(Protocol):
    """How a store's instants come about."""

    steered: bool

    def elapsed_ms(self) -> float:
        """A clock of this process that no step moves."""

    def instants(self, clock_ms: int, ahead_ms: int) -> Instants:
        """Store time and wall time, where the server's clock reads `clock_ms`."""

    def begin(self, store_ms: int, steps: int, sent_at: float, last_ms: int) -> None:
        """What the first look at a store shows: its time, and the last one that was committed."""

    def notice(self, store_ms: int, steps: int, sent_at: float) -> bool:
        """Compare an answer to a question that was sent then with what is known.

        False for a step that is not settled yet, and for an answer from before the last one was.
        """

    def reading(self) -> Reading | None:
        """Between what store time lies now, by this client's clock; None where it knows nothing yet."""

    def is_past(self, steps: int) -> bool:
        """Does this client know of later steps than these."""

    def forget(self) -> None:
        """Another store, or an older state of it, is in the place of what is known."""

    def expected_ms(self, steps: int) -> float | None:
        """What store time should be by this client's clock; None where it knows nothing of these steps."""

    def abandon(self) -> None:
        """In a forked child: a lock of its own, since a thread of the parent's may have held the other."""


class ServerClock:
    """The server's clock, watched by this process."""

    steered = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: Reading | None = None

    def elapsed_ms(self) -> float:
        if _COUNTS_SUSPEND is None:
            return time.monotonic_ns() / 1e6
        return time.clock_gettime_ns(_COUNTS_SUSPEND) / 1e6

    def instants(self, clock_ms: int, ahead_ms: int) -> Instants:
        return Instants(clock_ms + ahead_ms, clock_ms)

    def begin(self, store_ms: int, steps: int, sent_at: float, last_ms: int) -> None:
        if store_ms < last_ms - STEP_MS:
            # Set back before this client came. It believes what was committed, and so the next answer is a step.
            store_ms, sent_at = last_ms, self.elapsed_ms()
        self.notice(store_ms, steps, sent_at)

    def notice(self, store_ms: int, steps: int, sent_at: float) -> bool:
        now = self.elapsed_ms()
        # The server read its clock somewhere between the question and now.
        found = Reading(store_ms, store_ms + now - sent_at, now, steps)
        with self._lock:
            known = self._known
            if known is None or known.steps < steps:
                self._known = found
                return True
            if known.steps > steps:
                return False
            gone = now - known.elapsed_ms
            is_ahead = found.least_ms > known.most_ms + gone + STEP_MS
            is_behind = found.most_ms < known.least_ms + gone - STEP_MS
            if is_ahead or is_behind:
                return False
            if found.most_ms - found.least_ms < STEP_MS:
                self._known = found
            return True

    def reading(self) -> Reading | None:
        known, now = self._known, self.elapsed_ms()
        if known is None:
            return None
        gone = now - known.elapsed_ms
        return Reading(known.least_ms + gone, known.most_ms + gone, now, known.steps)

    def is_past(self, steps: int) -> bool:
        known = self._known
        return known is not None and known.steps > steps

    def forget(self) -> None:
        with self._lock:
            self._known = None

    def expected_ms(self, steps: int) -> float | None:
        at = self.reading()
        return None if at is None or at.steps != steps else (at.least_ms + at.most_ms) / 2

    def abandon(self) -> None:
        self._lock = threading.Lock()


class Steering(Protocol):
    """What a test moves."""

    def mono_ms(self) -> int: ...
    def wall_ms(self) -> int: ...


class SteeredClock:
    """A test's clock in place of the server's."""

    steered = True

    def __init__(self, clock: Steering) -> None:
        self._clock = clock
        self._steps = 0

    def elapsed_ms(self) -> float:
        return self._clock.mono_ms()

    def instants(self, clock_ms: int, ahead_ms: int) -> Instants:  # noqa: ARG002 - the server's does not count
        return Instants(self._clock.mono_ms(), self._clock.wall_ms())

    def begin(self, store_ms: int, steps: int, sent_at: float, last_ms: int) -> None:  # noqa: ARG002
        self._steps = steps

    def notice(self, store_ms: int, steps: int, sent_at: float) -> bool:  # noqa: ARG002
        self._steps = steps
        return True

    def reading(self) -> Reading | None:
        now_ms = self._clock.mono_ms()
        return Reading(now_ms, now_ms, now_ms, self._steps)

    def is_past(self, steps: int) -> bool:  # noqa: ARG002
        return False

    def forget(self) -> None:
        """It is steered, and knows the time."""

    def expected_ms(self, steps: int) -> float | None:  # noqa: ARG002
        return None

    def abandon(self) -> None:
        """It has no lock."""
