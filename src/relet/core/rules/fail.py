"""fail: end an attempt that went wrong; try again later, or never."""

from __future__ import annotations

from typing import Final

from relet.core.backend import Request
from relet.core.errors import Error
from relet.core.fields import DurationMs, Name, Text
from relet.core.model import Cause, End, FailReason, Handle
from relet.core.operation import Operation
from relet.core.payload import digest
from relet.core.rules.finish import Ended, finish, give_way, is_called_off, repeated
from relet.core.rules.guard import Ending, Repeat, hold
from relet.core.rules.settle import backoff_ms, bury, jittered, overdue, schedule, verdict
from relet.core.states import move
from relet.core.tx import Holding, Tx


class Fail(Request, frozen=True, kw_only=True):
    """An error in words; `retry=False` for good; `delay_ms` instead of the backoff; `code` for machines."""

    handle: Handle
    error: Text
    retry: bool = True
    delay_ms: DurationMs | None = None
    code: Name | None = None


async def fail(tx: Tx, ask: Fail) -> Ended | Error:
    """Count a failure; ready again after the delay, or a dead letter when that was the last attempt.

    After a cancel the task is cancelled instead. Jitter is added after the delay that was asked for.
    """
    ending = Ending(End.FAILED, digest(ask.error, str(ask.retry), str(ask.delay_ms), ask.code))
    held = await hold(tx, ask.handle, ending, even_cancelled=True)
    if isinstance(held, Error):
        return held
    if isinstance(held, Repeat):
        return repeated(held.answer)
    if is_called_off(held.task):
        return await give_way(tx, held, ending)
    lease, task, at = held
    task.failures, task.attempt = task.failures + 1, task.attempt + 1
    task.error, task.code = ask.error, ask.code
    reason = verdict(task, lease, at) if ask.retry or overdue(task, at) else FailReason.PERMANENT
    if reason is not None:
        bury(task, reason)
        answer = Ended(state=task.state, reason=str(reason))
        return await finish(
            tx, held, ending, Cause.FAILED, answer, reason=str(reason), error=ask.error, code=ask.code
        )
    delay_ms = _delay_ms(ask, held)
    task.state = move(task.state, Cause.RETRIED)
    schedule(task, at, delay_ms)
    answer = Ended(state=task.state, delay_ms=delay_ms)
    return await finish(tx, held, ending, Cause.RETRIED, answer, delay_ms=delay_ms, error=ask.error, code=ask.code)


def _delay_ms(ask: Fail, held: Holding) -> int:
    lease, task, _ = held
    if ask.delay_ms is not None:
        return jittered(ask.delay_ms, lease.token)
    return jittered(backoff_ms(task.failures, lease.backoff_base_ms, lease.backoff_cap_ms), lease.token)


FAIL: Final = Operation("fail", Fail, Ended, fail, "End an attempt that went wrong.")
