"""A file whose store was copied to another place, and goes on there: it can be read, and nobody writes into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from relet.core.errors import Conflict
from relet.store.copying import Gone, went_on
from relet.store.migrate import CLOSED, MIN_WRITER
from relet.store.statements import load

GONE_SQL: Final = load("relet.store.sqlite", "gone.sql", [
    "make_gone", "put_gone", "read_gone", "drop_gone", "set_writer", "read_writer",
])  # fmt: skip
Execute = Callable[..., Any]
"""Of a connection, or of its cursor."""


def read_gone(execute: Execute) -> Gone | None:
    """Where the store went; None while it is here."""
    if execute(GONE_SQL["read_writer"]).fetchone()[0] < CLOSED:
        return None
    return Gone(*execute(GONE_SQL["read_gone"]).fetchone())


def write_gone(execute: Execute, gone: Gone) -> None:
    """Refuse writers from now on, of whatever release; within a transaction."""
    execute(GONE_SQL["make_gone"])
    execute(GONE_SQL["put_gone"], gone._asdict())
    execute(GONE_SQL["set_writer"], {"writer": CLOSED})


def remove_gone(execute: Execute) -> None:
    """Take writers again; within a transaction."""
    execute(GONE_SQL["drop_gone"])
    execute(GONE_SQL["set_writer"], {"writer": MIN_WRITER})


def check_here(execute: Execute, min_writer: int) -> None:
    """Refuse to write into what has moved on. Raises `Conflict`, with the place."""
    if min_writer < CLOSED:
        return
    gone = Gone(*execute(GONE_SQL["read_gone"]).fetchone())
    raise Conflict(
        f"{went_on('this store was copied to', gone.place, gone.wall_ms)}; nothing was written. Have this program "
        "use that address. As long as nobody has worked there it can be taken back: relet copy --back, with the "
        "names of this file and of that database",
        code="RELET-COPIED", place=gone.place,
    )  # fmt: skip
