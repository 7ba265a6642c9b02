"""Load the named statements of an engine from its .sql files."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from relet.core.statements import named


def load(package: str, files: str, wanted: Iterable[str]) -> dict[str, str]:
    """Statements by name, of "one.sql" or of "one.sql two.sql" together. Raises LookupError as `named` does."""
    texts = [folder_of(package).joinpath(file).read_text(encoding="utf-8") for file in files.split()]
    return named("\n".join(texts), wanted, f"{package}/{files}")


def folder_of(package: str) -> Path:
    """Where a package's files lie; cheaper to find than through importlib.resources."""
    return Path(import_module(package).__path__[0])
