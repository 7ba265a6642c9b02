"""finish: end a held lease by a verb of its holder. Shared by complete, fail and release."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from relet.core.model import Cause, State
from relet.core.payload import decode
from relet.core.rules.effect import doubt_all
from relet.core.rules.guard import Ending
from relet.core.rules.settle import call_off
from relet.core.tx import Holding, TaskRow, Tx

COMPLETED: Final = Cause.COMPLETED
_ENCODER = msgspec.json.Encoder()


class Ended(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where the task stands after the lease ended, and for how long it waits before it can be claimed."""

    state: State
    delay_ms: int = 0
    reason: str | None = None


async def finish(tx: Tx, held: Holding, ending: Ending, cause: Cause, answer: Ended, **detail: Any) -> Ended:
    """Write the end of the lease with its answer, the task as the rule left it, and one event."""
    lease, task, at = held
    lease.ended, lease.ended_ms, lease.ended_wall_ms = ending.end, at.now_ms, at.wall_ms
    lease.end_digest, lease.end_answer = ending.digest, kept(answer)
    task.updated_wall_ms = at.wall_ms
    await tx.end_lease(lease)
    if task.unsettled:
        await doubt_all(tx, task, lease.token, at)
    await tx.add_event(task, cause, at, lease.token, lease.holder, **detail)
    if cause is COMPLETED:
        await tx.complete_task(task)
    else:
        await tx.update_task(task)
    return answer


async def give_way(tx: Tx, held: Holding, ending: Ending) -> Ended:
    """The holder stops because a cancel was asked for: now the task is cancelled."""
    call_off(held.task)
    answer = Ended(state=State.CANCELLED, reason=held.task.reason)
    return await finish(tx, held, ending, Cause.CANCELLED, answer, reason=held.task.reason)


def kept(answer: Ended) -> str:
    """The answer as it is kept with the lease, for a repeated request."""
    return _ENCODER.encode(answer).decode()


def repeated(answer: str) -> Ended:
    """The answer that the first of two equal requests was given."""
    return msgspec.convert(decode(answer), Ended)


def is_called_off(task: TaskRow) -> bool:
    """Was a cancel asked for while the task was held."""
    return task.cancel_reason is not None
