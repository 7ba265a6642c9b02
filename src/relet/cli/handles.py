"""The handle of a lease: from RELET_HANDLE, a file or stdin; never from arguments, which every user can read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from relet.cli.options import Decorated, Verb, verb
from relet.cli.values import STDIN, opened, parsed, read
from relet.core import border
from relet.core.border import invalid
from relet.core.errors import Invalid
from relet.core.model import Handle

_HANDLE = re.compile(r"\br1\.\d+\.[0-9a-fA-F]{16,}\.")
VARIABLE: Final = "RELET_HANDLE"
WAYS: Final = f"set {VARIABLE}, name a file by --handle-file, or send it to stdin"


class HolderVerb(Verb):
    """A command for whoever holds a lease; refuses a handle among its arguments before anything else."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if any(_HANDLE.search(word) for word in args):
            raise Invalid(
                "a handle was given as an argument, where every user of this machine can read it (ps), and shells "
                f"keep it in their history. It was not used. Instead {WAYS}",
                field="handle", code="RELET-HANDLE-IN-ARGV",
            )  # fmt: skip
        return super().parse_args(ctx, args)


def holder_verb(name: str, *, example: str) -> Callable[[Decorated], Verb]:
    """Declare a command that acts under a lease: it takes `--handle-file`."""

    def declare(function: Decorated) -> Verb:
        option = click.option(
            "--handle-file",
            metavar="FILE",
            help=f"Where the handle is; - for stdin. Without it: {VARIABLE}, else stdin.",
        )
        return verb(name, example=example, cls=HolderVerb)(option(function))

    return declare


def read_handle(file: str | None, *, stdin_taken: bool = False) -> Handle:
    """The handle of the lease to act under. Raises `Invalid` when there is none, or it is damaged."""
    if file is not None and file != STDIN:
        with opened("--handle-file", file) as source:
            return _handle(read("handle", source))
    if file is None and (given := os.environ.get(VARIABLE)):
        return _handle(given)
    if stdin_taken:
        raise invalid("handle", f"stdin is taken by the value; set {VARIABLE}, or name a file by --handle-file")
    if sys.stdin is None or sys.stdin.isatty():
        raise invalid("handle", f"there is none; {WAYS}")
    return _handle(read("handle", sys.stdin))


def _handle(text: str) -> Handle:
    text = text.strip()
    if not text:
        raise invalid("handle", f"there is none; {WAYS}")
    if text.startswith("{"):
        # What `relet claim` printed, whole.
        text = parsed("handle", text).get("handle", "")
    return border.handle(text)


class HandleFile:
    """A file for a new handle, readable by its owner alone; made before the claim, filled after it."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._draft = self.path.with_name(f".{self.path.name}.{os.urandom(4).hex()}")
        try:
            if self.path.is_dir():
                raise IsADirectoryError(21, "is a folder")
            if self.path.exists() and not self.path.is_file():
                raise FileExistsError(17, "is no regular file")
            os.close(os.open(self._draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as wrong:
            raise invalid("--handle-file", f"{path}: {wrong.strerror}; nothing was claimed") from wrong

    def discard(self) -> None:
        """Leave no draft behind; the file itself, if it was written, stays."""
        self._draft.unlink(missing_ok=True)

    def write(self, handle: str) -> None:
        """Put the handle in place of whatever the file held before, whole or not at all."""
        self._draft.write_text(f"{handle}\n", encoding="ascii")
        self._draft.replace(self.path)
