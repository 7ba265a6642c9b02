"""The holder's clock: the one that counts most, suspended time included, and that no step moves."""

from __future__ import annotations

import threading
import time
from typing import Protocol

# Linux names the clock that counts suspended time; macOS counts it in CLOCK_MONOTONIC; Windows in monotonic().
_FASTEST: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


class HolderClock(Protocol):
    """What a holder measures its own deadline with, and how it waits for an instant on it."""

    def fast_ms(self) -> float:
        """Milliseconds since some start, suspended time included."""

    def wall_ms(self) -> float:
        """UTC, to notice steps and pauses by."""

    def suspended_ms(self) -> float:
        """How much of that time the machine was suspended, from some start on."""

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        """Wait to be notified, at the latest for so long on this clock; the caller holds the condition."""


class SystemHolderClock:
    """This machine's clock."""

    def fast_ms(self) -> float:
        # CLOCK_MONOTONIC stands still while a Linux machine is suspended; the store's deadline may not.
        return time.clock_gettime_ns(_FASTEST) / 1e6 if _FASTEST is not None else time.monotonic_ns() / 1e6

    def wall_ms(self) -> float:
        return time.time() * 1e3

    def suspended_ms(self) -> float:
        # The monotonic clock of Python stands still meanwhile, on Linux and macOS alike.
        return self.fast_ms() - time.monotonic_ns() / 1e6

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        condition.wait(seconds)
