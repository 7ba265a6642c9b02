"""What crosses the border is parsed here, once: durations, names, times, payloads, handles.

Each function returns the clean value or raises `Invalid` naming the field, what was given, the limit and the
way out. After it nothing is checked again.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from typing import Any

from relet.core import limits
from relet.core.errors import Invalid
from relet.core.fields import CONTROL
from relet.core.model import Handle
from relet.core.redaction import SECRETS

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")
DURATION_TEXT = rf"^(?:(?:{_DURATION.pattern})+|\s*\d+(?:\.\d+)?\s*)$"
"""What a duration may be as text, for who has only a schema to go by."""
_RATE = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{1,9})?\s*(ms|s|m|h|d)\s*", re.ASCII)
# Lone surrogates, too: one engine or another cannot keep them.
_UNCLEAN_NAME = re.compile(rf"[{CONTROL}\ud800-\udfff]")
_UNCLEAN_TEXT = re.compile("[\x00\ud800-\udfff]")
_BEYOND_MS = 1e18
"""Longer than any limit, and still a number that can be rounded."""


def invalid(field: str, problem: str) -> Invalid:
    """An `Invalid` whose message starts with the field's name, which may be a path through somebody's own JSON."""
    field = field if field.isprintable() else ascii(field)[1:-1]
    if len(field) > limits.FIELD_CHARS_SHOWN:
        field = f"{field[: limits.FIELD_CHARS_SHOWN - 3]}..."
    return Invalid(f"{field}: {problem}", field=field)


def shown(value: object) -> str:
    """A value for an error message: short, and safe to print."""
    try:
        text = SECRETS.text(ascii(value))
    except Exception:  # noqa: BLE001 - a foreign repr, or a number of too many digits: the refusal goes out all the same
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - room of one line


def duration_ms(field: str, value: Any, *, least: int = 0, most: int = limits.DURATION_MS_MAX) -> int:
    """A duration as whole milliseconds: seconds, a timedelta, or text such as "90s", "2h", "1m30s"."""
    if type(value) is int and least <= value * 1_000 <= most:
        return value * 1_000
    ms = round(max(-_BEYOND_MS, min(_BEYOND_MS, _to_ms(field, value))))
    if not least <= ms <= most:
        raise invalid(
            field, f"{shown(value)} is outside {_span(least)} to {_span(most)}; give a duration between them"
        )
    return ms


def maybe_duration_ms(
    field: str, value: Any, *, least: int = 0, most: int = limits.DURATION_MS_MAX
) -> int | None:  # fmt: skip
    """As `duration_ms`, passing None through."""
    return None if value is None else duration_ms(field, value, least=least, most=most)


def _to_ms(field: str, value: Any) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds() * 1_000
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN is itself unequal
            raise invalid(field, f"{value} is not a finite number of seconds")
        return value * 1_000
    if isinstance(value, str):
        total, end = 0.0, 0
        while found := _DURATION.match(value, end):
            total += float(found[1]) * UNITS_MS[found[2]]
            end = found.end()
        if end and end == len(value):
            return total
        if re.fullmatch(r"\s*\d+(\.\d+)?\s*", value):
            return float(value) * 1_000
    raise invalid(
        field,
        f'{shown(value)} is not a duration; give seconds (90), a timedelta, or text such as "90s" or "2h"',
    )


def _span(ms: int) -> str:
    for unit, size in reversed(UNITS_MS.items()):
        if ms >= size and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"


def wall_ms(field: str, value: Any) -> int:
    """An aware datetime as UTC milliseconds; a naive one is refused, since its zone would be a guess."""
    if not isinstance(value, datetime):
        raise invalid(field, f"{shown(value)} is not a datetime; give an aware one, or use a duration")
    if value.tzinfo is None or value.utcoffset() is None:
        raise invalid(field, f"{value.isoformat()} is naive; add a zone, as in datetime.now(timezone.utc)")
    ms = round(value.timestamp() * 1_000)
    if not 0 <= ms <= limits.WALL_MS_MAX:
        raise invalid(field, f"{value.isoformat()} is outside the years 1970 to 9999; give another, or leave it out")
    return ms


def whole(field: str, value: Any, *, least: int, most: int) -> int:
    """A whole number between `least` and `most`; a bool is not one."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise invalid(field, f"{shown(value)} is not a whole number")
    if not least <= value <= most:
        raise invalid(field, f"{shown(value)} is outside {least} to {most}")
    return value


LIFT = "none"


def maybe_limit(field: str, value: Any, *, most: int) -> int | None:
    """How many of something at once; 0 for "none", which lifts the limit; None passes through."""
    if value is None:
        return None
    if value == LIFT:
        return 0
    if type(value) is not int or not 1 <= value <= most:
        raise invalid(
            field,
            f'{shown(value)} is no limit; give a whole number of 1 to {most}, or "{LIFT}" to lift it. '
            "To grant nothing at all, pause the queue → relet pause QUEUE",
        )
    return value


def maybe_rate(field: str, value: Any) -> tuple[int, int] | None:
    """Grants in a time, such as "100/m", as their number and milliseconds; (0, 0) for "none", which lifts it."""
    if value is None:
        return None
    if value == LIFT:
        return 0, 0
    found = _RATE.fullmatch(value) if isinstance(value, str) else None
    n, ms = (int(found[1]), int(found[2] or 1) * UNITS_MS[found[3]]) if found else (0, 0)
    if not (1 <= n <= limits.RATE_MAX and 1 <= ms <= limits.RATE_MS_MAX):
        raise invalid(
            field,
            f"{shown(value)} is no rate; give 1 to {limits.RATE_MAX} in up to {_span(limits.RATE_MS_MAX)}, such as "
            f'"100/m", "5/s" or "10/30s", or "{LIFT}" to lift it',
        )
    return n, ms


def flag(field: str, value: Any) -> bool:
    """True or False, and nothing that merely looks like it."""
    if not isinstance(value, bool):
        raise invalid(field, f"{shown(value)} is not True or False")
    return value


def name(field: str, value: Any, *, most: int = limits.NAME_CHARS_MAX) -> str:
    """A name or key: non-empty text without control characters, at most `most` characters."""
    if type(value) is str and 0 < len(value) <= most and value.isprintable():
        return value
    if not isinstance(value, str):
        raise invalid(field, f"{shown(value)} is not text; give a name as str")
    if not value or len(value) > most:
        raise invalid(field, f"has {len(value)} characters; give 1 to {most}")
    if bad := _UNCLEAN_NAME.search(value):
        raise invalid(field, f"{shown(value)} holds the character {bad[0]!a}, which no store keeps; leave it out")
    return str(value)  # plain, whatever subclass of text it was


def _is_name(value: str, most: int = limits.NAME_CHARS_MAX) -> bool:
    return 0 < len(value) <= most and _UNCLEAN_NAME.search(value) is None


def maybe_name(field: str, value: Any) -> str | None:
    """As `name`, passing None through."""
    return None if value is None else name(field, value)


def text(value: object, *, most: int = limits.TEXT_CHARS_MAX) -> str:
    """Free text, such as an error: cleaned and cut rather than refused, so that a failure is never lost.

    What is secret leaves before it is cut: of half of a secret nobody could tell that it is one.
    """
    clean = SECRETS.text(storable(str(value)))
    return clean if len(clean) <= most else f"{clean[: most - 1]}…"


def storable(value: str) -> str:
    """A text without what no store keeps."""
    return _UNCLEAN_TEXT.sub("\ufffd", value)


def labels(value: Any) -> dict[str, str] | None:
    """Labels: text to text, at most a few dozen."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise invalid("labels", f'{shown(value)} is not a mapping; give text to text, as in {{"team": "a"}}')
    if len(value) > limits.LABELS_MAX:
        raise invalid("labels", f"has {len(value)} entries; give at most {limits.LABELS_MAX}")
    return {name("labels", key): name(f"labels[{shown(key)}]", item) for key, item in value.items()}


def handle_text(handle: Handle) -> str:
    """A handle as the opaque string that processes pass to each other."""
    task_id = urlsafe_b64encode(handle.task_id.encode()).decode().rstrip("=")
    return f"r1.{handle.token}.{handle.secret}.{task_id}"


def handle(value: Any, field: str = "handle") -> Handle:
    """The handle in a string made by `handle_text`."""
    problem = "is not a handle; pass on `lease.handle`, or what `relet claim` printed, unchanged"
    if not isinstance(value, str) or len(value) > limits.HANDLE_CHARS_MAX or not value.isascii():
        raise invalid(field, problem)
    parts = value.strip().split(".")
    if len(parts) != 4 or parts[0] != "r1" or not parts[1].isdigit() or len(parts[1]) > 16:  # noqa: PLR2004
        raise invalid(field, problem)
    try:
        task_id = b64decode(parts[3] + "=" * (-len(parts[3]) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as wrong:
        raise invalid(field, problem) from wrong
    if int(parts[1]) > limits.TOKEN_MAX or not (_is_name(parts[2]) and _is_name(task_id, limits.ID_CHARS_MAX)):
        raise invalid(field, problem)
    return Handle(task_id, int(parts[1]), parts[2])
