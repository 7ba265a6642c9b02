"""memo: what the holder of a task reads when it goes on: kept steps, decisions, artifacts by name."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.errors import Error, NotFound
from relet.core.fields import AfterStep, Cursor, Name, Slot
from relet.core.model import Handle
from relet.core.operation import Operation
from relet.core.rules.guard import proven, stranger
from relet.core.tx import LeaseRow, Tx
from relet.core.work import Artifact, Decision
from relet.core.work_tx import Kept

FIRST = ("", "")


class Memo(Request, frozen=True, kw_only=True):
    """A page of the steps of the task behind a handle, and a page of its decisions; None leaves either out."""

    handle: Handle
    after: AfterStep | None = FIRST
    """The name and slot of the last step of the page before; None for no steps."""
    decisions_after: Cursor | None = 0
    """The `decisions_cursor` of the page before, 0 for the first; None for no decisions."""
    name: Name | None = None
    """Decisions under this name alone."""


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in the order of name and slot, decisions in that of their questions; and where to go on, or None."""

    steps: list[Kept]
    decisions: list[Decision]
    cursor: tuple[str, str] | None
    """Where the next page of steps begins; None after the last."""
    decisions_cursor: int | None
    """Where the next page of decisions begins; None after the last."""


async def memo(tx: Tx, ask: Memo) -> Remembered | Error:
    """What is kept; reading it asks for no live lease, using it does."""
    lease = await _lease(tx, ask.handle)
    if isinstance(lease, Error):
        return lease
    steps: list[Kept] = []
    if ask.after is not None:
        steps = await tx.find_kept(lease.task_seq, ask.after, limits.MEMO_ITEMS)
    decisions: list[Decision] = []
    following: int | None = None
    if ask.decisions_after is not None:
        decisions, following = await tx.find_decisions(
            lease.task_seq, ask.name, ask.decisions_after, limits.DECISIONS_PER_PAGE
        )
    full = len(steps) == limits.MEMO_ITEMS
    return Remembered(
        steps=steps, decisions=decisions, cursor=(steps[-1].name, steps[-1].slot) if full else None,
        decisions_cursor=following,
    )  # fmt: skip


class ReadStep(Request, frozen=True, kw_only=True):
    """The value of one kept step, too large for a page."""

    handle: Handle
    name: Name
    slot: Slot


async def read_step(tx: Tx, ask: ReadStep) -> msgspec.Raw | Error:
    """Its value as JSON."""
    lease = await _lease(tx, ask.handle)
    if isinstance(lease, Error):
        return lease
    text = await tx.find_step(lease.task_seq, ask.name, ask.slot)
    if text is None:
        return NotFound(f"name: there is no step {ask.name!r} ({ask.slot}) here", field="name")
    return msgspec.Raw(text.encode())


class Attached(Request, frozen=True, kw_only=True):
    """The newest artifact of a name, of the task behind a handle."""

    handle: Handle
    name: Name


async def attached(tx: Tx, ask: Attached) -> Artifact | Error:
    """Where its bytes are."""
    lease = await _lease(tx, ask.handle)
    if isinstance(lease, Error):
        return lease
    found = await tx.find_artifact(lease.task_seq, ask.name)
    return found or NotFound(
        f"name: task {ask.handle.task_id} has no artifact {ask.name!r} → relet artifacts {ask.handle.task_id}",
        field="name", name=ask.name,
    )  # fmt: skip


async def _lease(tx: Tx, handle: Handle) -> LeaseRow | Error:
    lease = await tx.find_lease(handle.token)
    return await stranger(tx, handle) if lease is None or not proven(tx, handle) else lease


MEMO: Final = Operation("memo", Memo, Remembered, memo, "What the next holder need not do again.", writes=False)
READ_STEP: Final = Operation("read_step", ReadStep, msgspec.Raw, read_step, "One large kept result.", writes=False)
ATTACHED: Final = Operation("attached", Attached, Artifact, attached, "The newest artifact of a name.", writes=False)
