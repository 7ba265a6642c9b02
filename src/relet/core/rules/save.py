"""save: keep a named JSON value for whoever holds the task next; load: read it."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.backend import Request
from relet.core.errors import Error
from relet.core.fields import Name
from relet.core.model import Cause, Handle
from relet.core.operation import Operation
from relet.core.rules.guard import Repeat, hold, proven, stranger
from relet.core.states import move
from relet.core.tx import Tx


class Save(Request, frozen=True, kw_only=True):
    """A checkpoint under a lease."""

    handle: Handle
    name: Name
    value: msgspec.Raw


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """How often this name has been saved, this time included."""

    version: int


async def save(tx: Tx, ask: Save) -> Saved | Error:
    """Replace the named value; progress, so the count of losses in a row starts anew."""
    held = await hold(tx, ask.handle)
    if isinstance(held, Error):
        return held
    assert not isinstance(held, Repeat), "only verbs that end a lease repeat"
    lease, task, at = held
    version = await tx.put_checkpoint(task.seq, ask.name, lease.token, at.wall_ms, bytes(ask.value).decode())
    if task.streak:
        task.streak, task.updated_wall_ms = 0, at.wall_ms
        await tx.update_task(task)
    task.state = move(task.state, Cause.SAVED)
    await tx.add_event(task, Cause.SAVED, at, lease.token, lease.holder, name=ask.name, version=version)
    return Saved(version=version)


class Load(Request, frozen=True, kw_only=True):
    """Read a checkpoint of the task behind a handle."""

    handle: Handle
    name: Name


async def load(tx: Tx, ask: Load) -> msgspec.Raw | Error:
    """The newest value saved under the name by any holder; JSON null when there is none."""
    lease = await tx.find_lease(ask.handle.token)
    if lease is None or not proven(tx, ask.handle):
        return await stranger(tx, ask.handle)
    return msgspec.Raw((await tx.find_checkpoint(lease.task_seq, ask.name) or "null").encode())


SAVE: Final = Operation("save", Save, Saved, save, "Keep a named value for the next holder.")
LOAD: Final = Operation(
    "load", Load, msgspec.Raw, load, "Read a value saved by any holder of the task.", writes=False
)
