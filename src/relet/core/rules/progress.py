"""progress: a note of where the work stands, for whoever looks, and for the next holder."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.backend import Request
from relet.core.errors import Error
from relet.core.fields import Text
from relet.core.model import Handle
from relet.core.operation import Operation
from relet.core.rules.guard import Repeat, hold
from relet.core.tx import Tx


class Progress(Request, frozen=True, kw_only=True):
    """A short text under a lease."""

    handle: Handle
    note: Text


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """The note that stands now."""

    note: str


async def progress(tx: Tx, ask: Progress) -> Noted | Error:
    """Replace the note. It is no checkpoint: it does not count against losses in a row, and is no event."""
    held = await hold(tx, ask.handle)
    if isinstance(held, Error):
        return held
    assert not isinstance(held, Repeat), "only verbs that end a lease repeat"
    held.task.progress, held.task.updated_wall_ms = ask.note, held.at.wall_ms
    await tx.update_task(held.task)
    return Noted(note=ask.note)


PROGRESS: Final = Operation("progress", Progress, Noted, progress, "Note where the work stands.")
