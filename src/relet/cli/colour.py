"""Colour, and whether it is wanted."""

from __future__ import annotations

import os
import sys

import click


def wanted(asked: bool | None) -> bool:
    """As asked for; else NO_COLOR, FORCE_COLOR and the terminal decide."""
    if asked is not None:
        return asked
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


class Paint:
    """Words in colour, or as they are."""

    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, colour: str | None, *, bold: bool = False) -> str:
        return click.style(text, fg=colour, bold=bold or None) if self._on and (colour or bold) else text
