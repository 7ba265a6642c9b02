"""complete: hand in results and end the leases; with `next`, claim again in the same transaction."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.errors import Conflict, Error
from relet.core.fields import items
from relet.core.model import Cause, End, Grant, Handle, State
from relet.core.operation import Operation
from relet.core.payload import digest
from relet.core.rules.claim import Claim, claim, misused
from relet.core.rules.finish import Ended, finish, repeated
from relet.core.rules.guard import Ending, Repeat, hold
from relet.core.states import move
from relet.core.tx import Holding, TaskRow, Tx

DONE: Final = Ended(state=State.DONE)


class Completion(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """One lease and the result of its task, as canonical JSON."""

    handle: Handle
    result: msgspec.Raw


class Complete(Request, frozen=True, kw_only=True):
    """Results to hand in, and what to claim once they are."""

    completions: Annotated[list[Completion], items(0, limits.COMPLETE_ITEMS_MAX)]
    next: Claim | None = None


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """Outcomes aligned with the completions, and the leases that `next` was granted."""

    outcomes: list[Ended | Error]
    grants: list[Grant] | Error = []


async def complete(tx: Tx, ask: Complete) -> Completed | Error:
    """Store each result under its token, before its lease expires, or refuse it and change nothing of it.

    A refused result is kept beside the rejection for the next holder. Nothing is claimed when every
    completion was refused: who lost all it held should look before it goes on.
    """
    following = None if ask.next is None else _following(ask.next, ask.completions)
    if following is not None and (refusal := await misused(tx, following)) is not None:
        return refusal
    known = await _known(tx, ask.completions)
    outcomes = [await _complete(tx, item, known.pop(item.handle.token, None)) for item in ask.completions]
    grants: list[Grant] | Error = []
    if following is not None and (not outcomes or any(isinstance(item, Ended) for item in outcomes)):
        grants = await claim(tx, following)
    return Completed(outcomes=outcomes, grants=grants)


def _following(ask: Claim, completions: list[Completion]) -> Claim:
    if ask.request_id is None:
        return ask
    said = [(item.handle.token, bytes(item.result).decode()) for item in completions]
    return msgspec.structs.replace(ask, after=digest(msgspec.json.encode(said).decode()))


async def _known(tx: Tx, completions: list[Completion]) -> dict[int, Holding]:
    """The leases to be ended, locked together; none whose task another of them is of, and may change first."""
    if len(completions) == 1:
        return {}
    known = await tx.lock_holdings([item.handle.token for item in completions])
    leases_of = Counter(held.task.seq for held in known.values())
    return {token: held for token, held in known.items() if leases_of[held.task.seq] == 1}


async def _complete(tx: Tx, item: Completion, held: Holding | None) -> Ended | Error:
    result = bytes(item.result).decode()
    ending = Ending(End.COMPLETED, digest(result), kept=result)
    found = await hold(tx, item.handle, ending, held=held)
    if isinstance(found, Error):
        return found
    if isinstance(found, Repeat):
        return repeated(found.answer)
    task = found.task
    if task.unsettled:
        return await _unsettled(tx, task)
    task.state, task.result = move(task.state, Cause.COMPLETED), result
    task.error = task.code = task.reason = None
    return await finish(tx, found, ending, Cause.COMPLETED, DONE)


UNSETTLED = "RELET-EFFECT-OPEN"


async def _unsettled(tx: Tx, task: TaskRow) -> Conflict:
    effects = await tx.find_open_effects(task.seq)
    return Conflict(
        f"task {task.id} cannot be completed: nobody knows yet what became of {len(effects)} of its effects "
        f"({', '.join(effects[:3])}); nothing was changed. Settle them first → relet effects --task {task.id}",
        code=UNSETTLED, task_id=task.id, effects=effects,
    )  # fmt: skip


COMPLETE: Final = Operation("complete", Complete, Completed, complete, "Hand in results; with next, claim again.")
