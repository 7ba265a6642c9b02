"""Epochs that nobody can know: a date is a floor for them, whatever copy of a store goes on."""

from __future__ import annotations

from typing import Final

from relet.core import limits

EPOCH_ZERO_WALL_MS: Final = 1_735_689_600_000
"""2025-01-01 UTC."""


def hours_at(wall_ms: int) -> tuple[int, int]:
    """Whole hours since then, and milliseconds within the last one."""
    return divmod(wall_ms - EPOCH_ZERO_WALL_MS, limits.HOUR_MS)
