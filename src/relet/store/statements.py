"""Load named statements from a .sql file, and refuse a file whose names are not the ones that are used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load(package: str, file: str, wanted: Iterable[str]) -> dict[str, str]:
    """The statements of a file by name. Raises LookupError on a missing, extra or repeated name."""
    parts = _NAME.split(files(package).joinpath(file).read_text(encoding="utf-8"))
    names = parts[1::2]
    if len(set(names)) != len(names) or set(names) != set(wanted):
        odd = sorted(set(names) ^ set(wanted)) or sorted(names)
        raise LookupError(f"{package}/{file}: these statements are missing, extra or repeated: {odd}")
    return {name: _bare(text) for name, text in zip(names, parts[2::2], strict=True)}


def _bare(text: str) -> str:
    lines = (line for line in text.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip().rstrip(";")
