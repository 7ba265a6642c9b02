"""How a handler is run and kept alive: where its heartbeat is, where it runs itself, how long it may be silent."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, Self

from relet.client.renewal import PROCESS, from_beside
from relet.core import border, limits
from relet.core.border import invalid, shown


class Ways(NamedTuple):
    """The choices of one kind."""

    beside: bool = False
    """Renewed by a process beside the worker."""
    apart: bool = False
    """Run in a child process."""
    max_silence_ms: int | None = None

    @classmethod
    def of(cls, heartbeat: Any, isolation: Any, max_silence: Any) -> Self:
        """Read what a handler asks for. Raises `Invalid`."""
        if isolation not in (None, PROCESS):
            raise invalid("isolation", f'is {shown(isolation)}; give "process", or leave it out')
        if sys.platform == "win32" and isolation == PROCESS:
            raise invalid("isolation", "in a process of its own needs Linux or macOS; leave it out here")
        return cls(
            beside=from_beside(heartbeat), apart=isolation == PROCESS,
            max_silence_ms=border.maybe_duration_ms("max_silence", max_silence, least=limits.TTL_MS_MIN),
        )  # fmt: skip
