"""Named statements in the text of a .sql file, and the refusal of one whose names are not the ones that are used."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def named(text: str, wanted: Iterable[str], file: str) -> dict[str, str]:
    """The statements of a text by name. Raises LookupError on a missing, extra or repeated name."""
    parts = _NAME.split(text)
    names = parts[1::2]
    if len(set(names)) != len(names) or set(names) != set(wanted):
        odd = sorted(set(names) ^ set(wanted)) or sorted(names)
        raise LookupError(f"{file}: these statements are missing, extra or repeated: {odd}")
    return {name: _bare(statement) for name, statement in zip(names, parts[2::2], strict=True)}


def _bare(text: str) -> str:
    # Shorter texts are found sooner among the prepared ones; no literal here holds two blanks or a line end.
    lines = (line.strip() for line in text.splitlines() if not line.startswith("--"))
    return " ".join(lines).strip().rstrip(";")
