"""A clock that stands still until it is told to go on; store, wall and holder time move together."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from relet.core import border
from relet.store.sqlite.clock import Boot

START_WALL_MS: Final = 1_800_000_000_000
START_MONO_MS: Final = 1_000_000
LOOK_EVERY_S: Final = 0.01
_READING = struct.Struct("<qq")


class Clock:
    """Steers a store and the holders that use it. With a path, several processes share the reading.

    `advance` moves both kinds of time; `step` moves the wall clock alone, as an administrator would.
    """

    def __init__(self, path: str | Path | None = None, boot: str = "steered") -> None:
        self.boot = Boot(boot, "", "steered-machine")
        self._path = None if path is None else Path(path)
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._suspended_ms = 0
        self._mono_ms, self._wall_ms = START_MONO_MS, START_WALL_MS
        if self._path is not None and not self._path.exists():
            self._keep()

    def advance(self, duration: Any) -> None:
        """Let time pass: seconds, a timedelta, or text such as "2d"."""
        ms = border.duration_ms("duration", duration)
        self._move(ms, ms)

    def step(self, seconds: float) -> None:
        """Step the wall clock forward or back; store time does not move."""
        self._move(0, round(seconds * 1_000))

    def suspend(self, duration: Any) -> None:
        """Suspend the machine for so long: wall and holder time go on, store time stands still."""
        ms = border.duration_ms("duration", duration)
        self._suspended_ms += ms
        self._move(0, ms)

    def mono_ms(self) -> int:
        """The machine's monotonic clock."""
        return self._read()[0]

    def fast_ms(self) -> float:
        """The holder's clock."""
        return self._read()[0] + self._suspended_ms

    def suspended_ms(self) -> float:
        """How long the machine was suspended, as this object was told."""
        return self._suspended_ms

    def wall_ms(self) -> int:
        """UTC."""
        return self._read()[1]

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        """Wait until notified or until this clock has moved on; looks again every few real milliseconds."""
        condition.wait(LOOK_EVERY_S if seconds is None or seconds > 0 else 0)

    def on_move(self, listener: Callable[[], None]) -> None:
        """Call back whenever this object is told to move."""
        self._listeners.append(listener)

    def _move(self, mono_ms: int, wall_ms: int) -> None:
        with self._lock:
            mono, wall = self._read()
            self._mono_ms, self._wall_ms = mono + mono_ms, wall + wall_ms
            self._keep()
        for listener in self._listeners:
            listener()

    def _read(self) -> tuple[int, int]:
        if self._path is None:
            return self._mono_ms, self._wall_ms
        deadline = time.monotonic() + 1
        while True:
            data = self._path.read_bytes()
            if len(data) == _READING.size:
                mono, wall = _READING.unpack(data)
                return mono, wall
            assert time.monotonic() < deadline, f"{self._path} holds no reading"

    def _keep(self) -> None:
        if self._path is not None:
            draft = self._path.with_suffix(f".{threading.get_ident()}")
            draft.write_bytes(_READING.pack(self._mono_ms, self._wall_ms))
            draft.replace(self._path)
