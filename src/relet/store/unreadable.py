"""What a row holds that no relet has written: told with its table and its row, wherever rows become nouns."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

import msgspec

from relet.core.border import shown
from relet.core.errors import DAMAGED, Unavailable

NO_MEANING: Final = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)
"""What a value without meaning raises: no member of a closed set, no JSON, no date.

Not `TypeError` and its like: engines keep the types of columns, so they speak of code and columns that differ.
"""
WHOLE_MAX: Final = (1 << 53) - 1
"""No count and no clock gets there, and up to it every reader keeps whole numbers exact."""
TABLE: Final = "table"
Read = TypeVar("Read", bound=Callable[..., Any])


def stored(table: str, *, named: int = 0) -> Callable[[Read], Read]:
    """A reader of rows of a table, each named by one of its columns. Raises `Unavailable` for one without meaning."""

    def told(read: Read) -> Read:
        @wraps(read)
        def reading(row: tuple[Any, ...], *more: Any) -> Any:
            try:
                return read(row, *more)
            except Unavailable as wrong:
                # Of JSON it is told without the row, which is known here.
                raise wrong if TABLE in wrong.detail else unreadable(table, row[named], wrong) from wrong.__cause__
            except NO_MEANING as wrong:
                raise unreadable(table, row[named], wrong) from wrong

        return cast("Read", reading)

    return told


def gone(table: str, name: Any) -> Unavailable:
    """The refusal where another row says that one must be there."""
    return _damage(table, name, "there is no such row, and others name it")


def unreadable(table: str, name: Any, wrong: Exception) -> Unavailable:
    """The refusal; what stands in the row is not said again, since nobody knows who wrote it."""
    what = "JSON" if isinstance(wrong, Unavailable | msgspec.MsgspecError) else "a value of its column"
    return _damage(table, name, f"its row holds what is not {what}")


def _damage(table: str, name: Any, what: str) -> Unavailable:
    return Unavailable(
        f"{table} {shown(name)}: {what}: the store is damaged, or was written by hand; nothing was done. See what "
        "else is → relet verify; then restore a backup, or mend the row",
        code=DAMAGED, **{TABLE: table, "row": str(name)[:100]},
    )  # fmt: skip
