"""A wait for what others hold, that has an end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

LOOK_EVERY_S: Final = 0.01


def tries(patience_ms: int) -> Iterator[None]:
    """One turn at once, then one every few milliseconds until the patience is used up."""
    until = time.monotonic() + patience_ms / 1_000
    yield
    while time.monotonic() < until:
        time.sleep(LOOK_EVERY_S)
        yield
