"""Values as words: times in UTC, spans, states with their glyph, tables. What users stored is printed harmless."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from relet.cli.colour import Paint
from relet.core.model import State

if TYPE_CHECKING:
    from relet.core.model import Task

# Control characters, and those that turn or hide the text around them.
_HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
GLYPHS: Final[dict[str, tuple[str, str, str | None]]] = {
    "ready": ("○", "o", None),
    "delayed": ("◌", ".", None),
    "leased": ("●", "*", "green"),
    "at risk": ("◐", "!", "yellow"),
    "lapsed": ("◍", "?", "red"),
    "waiting": ("◇", "w", "cyan"),
    "done": ("✓", "+", "green"),
    "failed": ("✗", "x", "red"),
    "cancelled": ("⊘", "-", "yellow"),
}
"""By condition: the glyph, the same where only ASCII can be printed, the colour."""
MINUTE_S: Final = 60
HOUR_S: Final = 60 * MINUTE_S
DAY_S: Final = 24 * HOUR_S
TENTHS_BELOW_S: Final = 10


def clean(value: object) -> str:
    """Text of a user's, which cannot move the cursor, change colours or hide the rest."""
    return _HARMFUL.sub(lambda found: found[0].encode("unicode_escape").decode(), str(value))


def when(moment: datetime | None) -> str:
    """UTC, to the millisecond."""
    return "-" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1_000:03}Z"


def span(seconds: float) -> str:
    """A duration in at most two units."""
    if seconds < TENTHS_BELOW_S:
        return f"{max(0.0, seconds):.1f}s"
    whole = int(seconds)
    for size, unit, below, smaller in (
        (DAY_S, "d", HOUR_S, "h"),
        (HOUR_S, "h", MINUTE_S, "m"),
        (MINUTE_S, "m", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // below:02}{smaller}"
    return f"{whole}s"


def since(moment: datetime | None, now: datetime) -> str:
    """How long ago."""
    return "-" if moment is None else span((now - moment).total_seconds())


def until(moment: datetime | None, now: datetime) -> str:
    """How long from now, or how long ago."""
    if moment is None:
        return "-"
    seconds = (moment - now).total_seconds()
    return span(seconds) if seconds > 0 else f"{span(-seconds)} ago"


def now_utc() -> datetime:
    """This moment."""
    return datetime.now(UTC)


def condition(task: Task, now: datetime) -> str:
    """The state, told apart further where it matters who acts next."""
    if task.state is State.LEASED:
        if not task.live:
            return "lapsed"
        return "at risk" if task.renew_by is not None and task.renew_by < now else "leased"
    if task.state is State.READY and task.due_at is not None and task.due_at > now:
        return "delayed"
    return str(task.state)


def state_word(task: Task, now: datetime, paint: Paint) -> str:
    """The state as glyph and word. The word is the state's own name, whatever else is known."""
    name = condition(task, now)
    glyph, plain, colour = GLYPHS[name]
    extra = f" in {until(task.due_at, now)}" if name == "delayed" else ""
    if task.waiting_for is not None:
        extra = f" for {clean(task.waiting_for)}"
    if task.cancel_requested:
        extra = " (cancelling)"
    elif name in ("at risk", "lapsed"):
        extra = f" ({name})"
    return paint(f"{glyph if can_print(glyph) else plain} {task.state}{extra}", colour)


def can_print(text: str) -> bool:
    """Can stdout encode it."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def quoted(word: str) -> str:
    """A word as a shell would have to be given it."""
    return shlex.quote(word)


def flat(value: Any) -> str:
    """A JSON value on one line."""
    from relet.cli.session import encoded

    return clean(value) if isinstance(value, str) else clean(encoded(value))


def cut(text: str, most: int) -> str:
    """A text, or its beginning and how long it is; --json has all of it."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


_COLOURED = re.compile("\x1b\\[[0-9;]*m")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], paint: Paint) -> str:
    """Rows under their heads, two spaces apart, as wide as they need."""
    widths = [max(_width(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = [_line([paint(cell, None, bold=True) for cell in head], widths)]
    lines += [_line(row, widths) for row in rows]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()


def _width(cell: str) -> int:
    return len(_COLOURED.sub("", cell))


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Names and what they are, one a line."""
    widest = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{widest}}  {value}".rstrip() for name, value in rows)
