"""release: give a task back unfinished; costs no attempt, unless the lease was lost by its holder's clock."""

from __future__ import annotations

from typing import Final

from relet.core.backend import Request
from relet.core.errors import Error
from relet.core.fields import DurationMs
from relet.core.model import Cause, End, GivenBack, Handle, LapsedBy, State
from relet.core.operation import Operation
from relet.core.payload import digest
from relet.core.rules.finish import Ended, finish, give_way, is_called_off, kept, repeated
from relet.core.rules.guard import Ending, Repeat, hold
from relet.core.rules.lapse import count_lapse
from relet.core.rules.settle import schedule
from relet.core.states import move
from relet.core.tx import Tx


class Release(Request, frozen=True, kw_only=True):
    """Which lease, how long the task should stay out of reach, and why, for the history."""

    handle: Handle
    delay_ms: DurationMs = 0
    why: GivenBack = GivenBack.RELEASED


LAPSES: Final = {GivenBack.HOLDER_EXPIRED: LapsedBy.HOLDER_EXPIRED, GivenBack.MAX_SILENCE: LapsedBy.MAX_SILENCE}
"""What a holder says that has lost the lease by its own clock: for the store it is a lapse that comes early."""


async def release(tx: Tx, ask: Release) -> Ended | Error:
    """Put the task back into its queue; after a cancel it is cancelled instead."""
    if (by := LAPSES.get(ask.why)) is not None:
        return await _let_go(tx, ask, by)
    ending = Ending(End.RELEASED, digest(str(ask.delay_ms)))
    held = await hold(tx, ask.handle, ending, even_cancelled=True)
    if isinstance(held, Error):
        return held
    if isinstance(held, Repeat):
        return repeated(held.answer)
    if is_called_off(held.task):
        return await give_way(tx, held, ending)
    task = held.task
    task.state = move(task.state, Cause.RELEASED)
    schedule(task, held.at, ask.delay_ms)
    answer = Ended(state=task.state, delay_ms=ask.delay_ms)
    why = None if ask.why is GivenBack.RELEASED else str(ask.why)
    return await finish(tx, held, ending, Cause.RELEASED, answer, delay_ms=ask.delay_ms, why=why)


async def _let_go(tx: Tx, ask: Release, by: LapsedBy) -> Ended | Error:
    """Work that starves its own heartbeat would be repeated for ever, and may still be running: count the lapse."""
    ending = Ending(End.LAPSED, digest(str(by)))
    held = await hold(tx, ask.handle, ending, even_cancelled=True)
    if isinstance(held, Error):
        return held
    if isinstance(held, Repeat):
        return repeated(held.answer)
    lease, task, at = held
    lease.end_digest = ending.digest
    delay_ms = await count_lapse(tx, lease, task, at, by)
    answer = Ended(state=task.state, delay_ms=delay_ms, reason=None if task.state is State.READY else task.reason)
    lease.end_answer = kept(answer)
    await tx.end_lease(lease)
    return answer


RELEASE: Final = Operation("release", Release, Ended, release, "Give a task back unfinished; costs no attempt.")
