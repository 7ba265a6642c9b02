"""JSON that a command is given: as an argument, from @file, or from stdin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

from relet.core import limits
from relet.core.border import invalid, shown

READ_CHARS_MAX: Final = 16 * limits.PAYLOAD_BYTES_MAX
"""Far more than a payload may have once white space is gone; who sends more is told so by the limit of payloads."""
STDIN: Final = "-"


def text_of(field: str, argument: str) -> str:
    """The text that an argument means: itself, a file's after `@`, or stdin's for `-`."""
    if argument == STDIN:
        return read(field, sys.stdin)
    if argument.startswith("@"):
        with opened(field, argument[1:]) as file:
            return read(field, file)
    return argument


def read(field: str, file: IO[str]) -> str:
    """All of a file, within a limit far beyond any payload's."""
    try:
        return file.read(READ_CHARS_MAX)
    except UnicodeDecodeError as wrong:
        raise invalid(field, f"is not UTF-8: {wrong}") from wrong


def json_of(field: str, argument: str | None) -> Any:
    """The JSON value that an argument means; None without one. Raises `Invalid`."""
    return None if argument is None else parsed(field, text_of(field, argument))


def json_lines(field: str, argument: str | None) -> Iterator[Any]:
    """The JSON values of @file or stdin, one a line; empty lines are passed over."""
    source = argument or STDIN
    if source != STDIN and not source.startswith("@"):
        raise invalid(field, "with --lines give @file, or - for stdin")
    file = sys.stdin if source == STDIN else opened(field, source[1:])
    try:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield parsed(f"{field}, line {number}", line)
    except UnicodeDecodeError as wrong:
        raise invalid(field, f"is not UTF-8: {wrong}") from wrong


def parsed(field: str, text: str) -> Any:
    """The JSON value in a text."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as wrong:
        raise invalid(
            field, f"""{shown(text.strip())} is not JSON ({wrong}); text needs quotes, as in '"text"'"""
        ) from wrong


def opened(field: str, path: str) -> IO[str]:
    """A file to read."""
    try:
        return Path(path).open(encoding="utf-8")
    except OSError as wrong:
        raise invalid(field, f"{path}: {wrong.strerror}") from wrong


def moment_of(field: str, argument: str | None) -> datetime | None:
    """A time in ISO 8601; that it must name its zone, the client checks."""
    if argument is None:
        return None
    try:
        return datetime.fromisoformat(argument)
    except ValueError as wrong:
        raise invalid(field, f"{shown(argument)} is not a time; write 2027-01-31T18:00:00Z") from wrong
