"""Load the named statements of an engine from its .sql file."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from relet.core.statements import named


def load(package: str, file: str, wanted: Iterable[str]) -> dict[str, str]:
    """The statements of a file by name. Raises LookupError on a missing, extra or repeated name."""
    return named(folder_of(package).joinpath(file).read_text(encoding="utf-8"), wanted, f"{package}/{file}")


def folder_of(package: str) -> Path:
    """Where a package's files lie; cheaper to find than through importlib.resources."""
    return Path(import_module(package).__path__[0])
