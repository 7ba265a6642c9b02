"""park: end a lease with a question, and give the task back until it is answered."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.backend import Request
from relet.core.errors import Error
from relet.core.fields import DurationMs, Name, Nth
from relet.core.model import Cause, End, Handle
from relet.core.operation import Operation
from relet.core.payload import digest
from relet.core.rules.answer import Fallback, answer, lacks_value
from relet.core.rules.effect import named_effect, settled_as
from relet.core.rules.finish import Ended, finish, repeated
from relet.core.rules.guard import Ending, Repeat, hold
from relet.core.rules.settle import schedule_wall
from relet.core.states import move
from relet.core.tx import Holding, TaskRow, Tx
from relet.core.work import BY_PERSON, DecisionKind, WaitKind
from relet.core.work_tx import WaitRow

BY_SIGNAL = "signal"
ALLOWED_DEFAULTS: Final[dict[WaitKind, tuple[DecisionKind, ...]]] = {
    WaitKind.APPROVAL: BY_PERSON, WaitKind.SIGNAL: (DecisionKind.SIGNAL,), WaitKind.TIMER: (), WaitKind.RECONCILE: (),
}  # fmt: skip


class Park(Request, frozen=True, kw_only=True):
    """A question under a lease. Without `n` it is the next occurrence of its name."""

    handle: Handle
    name: Name
    kind: WaitKind
    ask: msgspec.Raw
    n: Nth | None = None
    timeout_ms: DurationMs | None = None
    fallback: Fallback | None = None
    key_id: Name | None = None
    """The credential that asks, by the word of the service; what is sent in its place counts for nothing."""

    def at_odds(self) -> tuple[str, str] | None:
        """A timer ends by its time alone; what stands when nobody answered in time is of the kind that is asked."""
        if self.kind is WaitKind.TIMER and self.timeout_ms is None:
            return "timeout_ms", "is missing; a timer ends by it and by nothing else"
        if self.fallback is None:
            return None
        if self.timeout_ms is None:
            return "fallback", "goes with timeout_ms: it stands when nobody answered in time"
        if self.fallback.kind not in ALLOWED_DEFAULTS[self.kind]:
            return "fallback.kind", f"is no answer to what waits for {self.kind}"
        return lacks_value(self.fallback.kind, self.fallback.value, "fallback.value")


async def park(tx: Tx, ask: Park) -> Ended | Error:
    """Waiting, without a lease and at no attempt's cost; ready at once when the answer is there already."""
    text = bytes(ask.ask).decode()
    fallback = None if ask.fallback is None else msgspec.json.encode(ask.fallback).decode()
    ending = Ending(End.PARKED, digest(ask.name, ask.kind, text, str(ask.n), str(ask.timeout_ms), fallback))
    held = await hold(tx, ask.handle, ending)
    if isinstance(held, Error):
        return held
    if isinstance(held, Repeat):
        return repeated(held.answer)
    wait = await _question(tx, ask, held, text, fallback)
    return await _give_back(tx, held, ending, wait, ask.key_id)


async def _question(tx: Tx, ask: Park, held: Holding, text: str, fallback: str | None) -> WaitRow:
    """The question, asked anew where it was withdrawn before it was answered."""
    lease, task, at = held
    said, n = question_digest(ask.kind, text), ask.n
    if n is None:
        last = await tx.lock_last_wait(task.seq, ask.name)
        n = 1 if last is None else last.n + 1
    wait = await tx.lock_question(task.seq, ask.name, n, said)
    if wait is not None and wait.decision is not None:
        return wait
    due_ms = None if ask.timeout_ms is None else at.wall_ms + ask.timeout_ms
    if wait is None:
        wait = WaitRow(
            seq=0, task_seq=task.seq, tenant=task.tenant, name=ask.name, n=n, kind=ask.kind, ask=text, digest=said,
            fallback=fallback, token=lease.token, opened_wall_ms=at.wall_ms, due_wall_ms=due_ms, decision=None,
            value=None, decided_by=None, decided_wall_ms=None,
        )  # fmt: skip
        wait.seq = await tx.insert_wait(wait)
        return wait
    wait.token, wait.opened_wall_ms, wait.fallback = lease.token, at.wall_ms, fallback
    if wait.kind is not WaitKind.TIMER:  # whose first time stands
        wait.due_wall_ms = due_ms
    await tx.update_wait(wait)
    return wait


async def _give_back(tx: Tx, held: Holding, ending: Ending, wait: WaitRow, key_id: str | None) -> Ended:
    task, at = held.task, held.at
    task.state, task.streak = move(task.state, Cause.PARKED), 0
    task.error = task.code = task.reason = None
    detail = {"name": wait.name, "n": wait.n, "wait": str(wait.kind), "digest": wait.digest}
    if key_id is not None:
        detail["key_id"] = key_id
    if wait.decision is not None:
        task.state = move(task.state, Cause.ANSWERED)
        schedule_wall(task, None)
        answer_now = Ended(state=task.state)
        return await finish(tx, held, ending, Cause.PARKED, answer_now, **detail, answered=True)
    _set_aside(task, wait)
    early = await _early_answer(tx, task, wait)
    if early is None:
        delay_ms = max(0, wait.due_wall_ms - at.wall_ms) if wait.due_wall_ms is not None else 0
        return await finish(tx, held, ending, Cause.PARKED, Ended(state=task.state, delay_ms=delay_ms), **detail)
    # The lease ends all the same; the next holder finds the answer.
    ready = Ended(state=move(task.state, Cause.ANSWERED))
    await finish(tx, held, ending, Cause.PARKED, ready, **detail)
    await answer(tx, task, wait, at, *early)
    return ready


async def _early_answer(tx: Tx, task: TaskRow, wait: WaitRow) -> tuple[DecisionKind, str | None, str] | None:
    """What was there before it was waited for: a kept signal, or the end of the effect that is asked about."""
    if wait.kind is WaitKind.SIGNAL and (signal := await tx.lock_signal(task.seq, wait.name)) is not None:
        seq, payload = signal
        await tx.take_signal(seq, wait.seq)
        return DecisionKind.SIGNAL, payload, BY_SIGNAL
    if wait.kind is WaitKind.RECONCILE and (effect := await tx.lock_effect(named_effect(wait.name))) is not None:
        return settled_as(effect)
    return None


def _set_aside(task: TaskRow, wait: WaitRow) -> None:
    task.waiting_for, task.wait_seq = wait.name, wait.seq
    schedule_wall(task, wait.due_wall_ms)


def question_digest(kind: WaitKind, text: str) -> str:
    """The fingerprint of what is asked: an answer counts for this and for nothing else."""
    return digest(kind, text)


PARK: Final = Operation("park", Park, Ended, park, "Wait for a person, a signal or a time without holding the task.")
