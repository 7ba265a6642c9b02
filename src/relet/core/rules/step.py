"""step: keep the result of a call for whoever holds the task next; the first result of a slot stands."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.backend import Request
from relet.core.errors import Conflict, Error
from relet.core.fields import Cost, DurationMs, Fingerprint, Name, Slot
from relet.core.model import Cause, Handle
from relet.core.operation import Operation
from relet.core.rules.guard import Repeat, hold
from relet.core.states import move
from relet.core.tx import Tx
from relet.core.work_tx import Kept, StepRow


class KeepStep(Request, frozen=True, kw_only=True):
    """A result under a lease. `slot` is the step's key, or which call of its name it was."""

    handle: Handle
    name: Name
    slot: Slot
    value: msgspec.Raw
    fingerprint: Fingerprint | None = None
    took_ms: DurationMs = 0
    cost: Cost | None = None


async def keep_step(tx: Tx, ask: KeepStep) -> Kept | Error:
    """What is kept for the slot from now on: this result, or the one that was there."""
    held = await hold(tx, ask.handle)
    if isinstance(held, Error):
        return held
    assert not isinstance(held, Repeat), "only verbs that end a lease repeat"
    lease, task, at = held
    text = bytes(ask.value).decode()
    row = await tx.lock_step(task.seq, ask.name, ask.slot)
    if row is None:
        row = StepRow(
            task_seq=task.seq, name=ask.name, slot=ask.slot, fingerprint=ask.fingerprint, token=lease.token,
            wall_ms=at.wall_ms, took_ms=ask.took_ms, cost=ask.cost, value=text,
        )  # fmt: skip
        await tx.insert_step(row)
        if task.streak:
            task.streak, task.updated_wall_ms = 0, at.wall_ms
            await tx.update_task(task)
        task.state = move(task.state, Cause.STEPPED)
        await tx.add_event(
            task, Cause.STEPPED, at, lease.token, lease.holder, name=ask.name, slot=ask.slot, took_ms=ask.took_ms,
            cost=ask.cost,
        )  # fmt: skip
    elif row.fingerprint != ask.fingerprint:
        return changed(task.id, ask.name, ask.slot)
    return Kept(
        name=row.name, slot=row.slot, fingerprint=row.fingerprint, took_ms=row.took_ms, cost=row.cost,
        value=msgspec.Raw(row.value.encode()),
    )  # fmt: skip


CHANGED = "RELET-STEP-CHANGED"


def changed(task_id: str, name: str, slot: str) -> Conflict:
    """The refusal of a step that is known by this name with other arguments."""
    which = f"call {slot[1:]} of it" if slot.startswith("#") else f"key {slot[1:]!r}"
    return Conflict(
        f"step {name!r} ({which}) of task {task_id} was kept for other arguments: the code before it has changed, or "
        "its calls come in another order. Nothing was written; give the new step another name or a key=, or start a "
        f"new task → relet steps {task_id}",
        code=CHANGED, field="name", task_id=task_id, name=name, slot=slot,
    )  # fmt: skip


KEEP_STEP: Final = Operation("keep_step", KeepStep, Kept, keep_step, "Keep the result of a call for the next holder.")
