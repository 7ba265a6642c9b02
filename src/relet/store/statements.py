"""Load named statements from a .sql file, and refuse a file whose names are not the ones that are used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load(package: str, file: str, wanted: Iterable[str]) -> dict[str, str]:
    """The statements of a file by name. Raises LookupError on a missing, extra or repeated name."""
    parts = _NAME.split(folder_of(package).joinpath(file).read_text(encoding="utf-8"))
    names = parts[1::2]
    if len(set(names)) != len(names) or set(names) != set(wanted):
        odd = sorted(set(names) ^ set(wanted)) or sorted(names)
        raise LookupError(f"{package}/{file}: these statements are missing, extra or repeated: {odd}")
    return {name: _bare(text) for name, text in zip(names, parts[2::2], strict=True)}


def folder_of(package: str) -> Path:
    """Where a package's files lie; cheaper to find than through importlib.resources."""
    return Path(import_module(package).__path__[0])


def _bare(text: str) -> str:
    # Shorter texts are found sooner among the prepared ones; no literal here holds two blanks or a line end.
    lines = (line.strip() for line in text.splitlines() if not line.startswith("--"))
    return " ".join(lines).strip().rstrip(";")
