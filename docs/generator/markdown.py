"""Small pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a cell's line breaks become spaces, and its bars are escaped."""
    lines = [_row(heads), _row(["---"] * len(heads))]
    return "\n".join([*lines, *(_row(row) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def code(text: object) -> str:
    """Text as code."""
    return f"`{text}`"
