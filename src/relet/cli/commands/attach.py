"""`relet attach`, `relet progress`: files, and a word on where the work stands, for whoever looks."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from relet.cli.handles import holder_verb, read_handle
from relet.cli.session import Session
from relet.cli.values import STDIN, text_of
from relet.cli.words import clean
from relet.client import work_asks
from relet.core import border


@holder_verb("attach", example="relet attach page.html page.html --handle-file .handle")
@click.argument("name")
@click.argument("file")
def attach(session: Session, name: str, file: str, handle_file: str | None) -> None:
    """Keep a file with the task, under a plain name.

    FILE is a path, or - for stdin. Prints the artifact's URI. Ends with exit code 5 when the lease is lost: nobody
    sees the file then.
    """
    handle = read_handle(handle_file, stdin_taken=file == STDIN)
    work_asks.artifact_name(name)
    with _path(file) as path:
        kept = session.existing().lease(border.handle_text(handle)).attach(name, path)
    if session.json:
        session.answer({"task_id": handle.task_id, **msgspec.structs.asdict(kept)})
    else:
        session.data(kept.uri)


@contextmanager
def _path(file: str) -> Iterator[str]:
    """Where the bytes are; those of stdin are put into a file, since nobody knows how many they are."""
    if file != STDIN:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="relet-attach-") as folder:
        path = Path(folder, "stdin")
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield str(path)


@holder_verb("progress", example='relet progress "page 3 of 12" --handle-file .handle')
@click.argument("note")
def progress(session: Session, note: str, handle_file: str | None) -> None:
    """Say where the work stands; `relet show` has the newest note.

    NOTE is text, @file, or - for stdin. It is no checkpoint, and no event of the task's history.
    """
    handle = read_handle(handle_file, stdin_taken=note == STDIN)
    ask = work_asks.progress(handle, text_of("note", note).rstrip("\n"))
    noted = session.existing().backend.call(ask).note
    if session.json:
        session.answer({"task_id": handle.task_id, "token": handle.token, "note": noted})
    else:
        session.data(clean(noted))
