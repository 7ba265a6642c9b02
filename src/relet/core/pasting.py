"""What is advised to paste: names as Python and a shell take them, whatever characters they have."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Final

import msgspec

TENANT: Final = "default"
"""Whose commands name no tenant, where nobody has set another."""


def literal(name: str) -> str:
    """A name as a string of Python, which is written as one of JSON is."""
    return msgspec.json.encode(name).decode()


def command(verb: str, *names: str, options: Sequence[str] = (), tenant: str | None = None) -> str:
    """A command with its arguments, and of this tenant where one is given.

    An argument that begins as options do is told from them.
    """
    flags = [quote(word) for word in (*options, *(() if tenant is None else ("--tenant", tenant)))]
    arguments = [quote(name) for name in names]
    if any(name.startswith("-") for name in names):
        return " ".join(["relet", verb, *flags, "--", *arguments])
    return " ".join(["relet", verb, *arguments, *flags])
