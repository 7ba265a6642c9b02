"""signal: a value for a task, taken at once by one that waits for it, else kept until one does."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.errors import Conflict, Error
from relet.core.fields import CallId, Name, TaskId
from relet.core.model import Cause, State
from relet.core.operation import Operation
from relet.core.rules.absent import no_task
from relet.core.rules.answer import answer, is_over, time_out
from relet.core.rules.park import BY_SIGNAL
from relet.core.rules.settle import is_finished
from relet.core.tx import Held, Tx
from relet.core.work import DecisionKind, Signalled, WaitKind
from relet.core.work_tx import WaitRow


class Signal(Request, frozen=True, kw_only=True):
    """A named value; `call_id` is made once for each call, so that repeating it delivers once."""

    task_id: TaskId
    name: Name
    call_id: CallId
    payload: msgspec.Raw


async def signal(tx: Tx, ask: Signal) -> Signalled | Error:
    """Answer the wait, or keep the value; each signal answers one wait, in the order in which they came."""
    held = await tx.lock_task(ask.task_id)
    if held is None:
        return await no_task(tx, ask.task_id)
    task, at = held
    kept = await tx.count_signals(task.seq)
    taken_before = await tx.find_signal(task.seq, ask.call_id)
    if taken_before is not None:
        return Signalled(taken=bool(taken_before), kept=kept)
    if is_finished(task):
        return Conflict(
            f"task {task.id} is {task.state} and takes no more signals; nothing was kept → relet show {task.id}",
            task_id=task.id, state=str(task.state),
        )  # fmt: skip
    wait = await _open(tx, held, ask.name)
    if wait is None and kept >= limits.SIGNALS_KEPT:
        return Conflict(
            f"task {task.id} keeps {kept} signals that nobody has taken, the limit is {limits.SIGNALS_KEPT}; this "
            f"one was not kept. Send it once some are taken → relet show {task.id}",
            code="RELET-SIGNALS-FULL", task_id=task.id, kept=kept,
        )  # fmt: skip
    payload = bytes(ask.payload).decode()
    await tx.insert_signal(task.seq, ask.name, ask.call_id, payload, at.wall_ms, None if wait is None else wait.seq)
    if wait is None:
        await tx.add_event(task, Cause.SIGNALLED, at, None, None, name=ask.name, kept=kept + 1)
        return Signalled(taken=False, kept=kept + 1)
    await answer(tx, task, wait, at, DecisionKind.SIGNAL, payload, BY_SIGNAL)
    return Signalled(taken=True, kept=kept)


async def _open(tx: Tx, held: Held, name: str) -> WaitRow | None:
    """The open wait for this signal; one whose time has run out is ended first, and takes nothing."""
    task, at = held
    if task.state is not State.WAITING or task.wait_seq is None:
        return None
    wait = await tx.lock_wait(task.wait_seq)
    if is_over(wait, at):
        await time_out(tx, task, wait, at)
        return None
    return wait if wait.kind is WaitKind.SIGNAL and wait.name == name else None


SIGNAL: Final = Operation("signal", Signal, Signalled, signal, "Send a value to a task.")
