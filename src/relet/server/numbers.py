"""Whole numbers that come as text, in a query or in a header: digits alone, so that nothing has two spellings."""

from __future__ import annotations

from typing import Final

from relet.core.border import invalid, shown

_DIGITS_MAX: Final = 18
"""Of 64 bits; a longer one is not even read."""
WHOLE_MAX: Final = 10**_DIGITS_MAX - 1


def whole(field: str, given: str | None, says: str, *, least: int = 0, most: int = WHOLE_MAX) -> int | None:
    """The number, None where none was given. Raises `Invalid`, which ends with what it should be."""
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= _DIGITS_MAX and least <= int(given) <= most):
        raise invalid(field, f"{shown(given)} is no {says}")
    return int(given)
