"""One attempt: call the handler, and say in one word how it ended."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec

from relet.client.durable.facts import RunFacts, beside
from relet.client.durable.results import MISFIT
from relet.client.durable.run import AsyncRun, Run, enter
from relet.client.durable.sight import Saw, Sight
from relet.client.lease import UNREADABLE, LostInBlock, is_store_away
from relet.client.telling import INFO, WARNING
from relet.core.errors import Error, Invalid, LeaseLost, LeaseStopped, Parked, Permanent, Refused, Temporary
from relet.core.model import End, LostReason
from relet.core.rules.start_effect import BUSY, OTHER_PAYLOAD
from relet.core.rules.step import CHANGED
from relet.worker.app import Handler
from relet.worker.logs import about

TIMEOUT_CODE = "RELET-TIMEOUT"
DEADLINE_CODE = "RELET-DEADLINE"
RESULT_CODE = "RELET-RESULT"
NOT_AWAITED_CODE = "RELET-NOT-AWAITED"
AWAY_CODE = "RELET-UNAVAILABLE"


class Done(NamedTuple):
    """It returned; the result is JSON already."""

    result: msgspec.Raw


class Failed(NamedTuple):
    """It raised: the arguments of `fail`."""

    arguments: dict[str, Any]


class Stopped(NamedTuple):
    """It was told to stop, and did."""

    cause: Error


class Waiting(NamedTuple):
    """Its task waits; the lease was ended by parking, and nothing is left to tell."""

    parked: Parked


class Unsettled(NamedTuple):
    """It returned while nobody knows what became of this effect of its: the task waits until somebody does."""

    effect_id: str


Outcome = Done | Failed | Stopped | Waiting | Unsettled
FOR_GOOD = (CHANGED, OTHER_PAYLOAD, MISFIT)
"""Refusals that the same code meets again however often it is tried."""


def run_blocking(handler: Handler, run: Run) -> Outcome:
    """Call a `def` handler in this thread."""
    enter(run)
    try:
        args, named = handler.binding.arguments(run.lease.input)
        first = [run] if handler.binding.takes_run else []
        return _done(handler, run, handler.function(*first, *args, **named))
    except BaseException as raised:  # noqa: BLE001 - whatever a handler raises becomes an outcome
        return outcome_of(run, raised)


async def run_awaiting(handler: Handler, run: AsyncRun, task: asyncio.Task[Any]) -> Outcome:
    """Await an `async def` handler in this task, which is given."""
    enter(run)
    run.bind(task)
    try:
        args, named = handler.binding.arguments(run.lease.input)
        first = [run] if handler.binding.takes_run else []
        result = await handler.function(*first, *args, **named)
        run.told = run.told or task.cancelling() > 0
        return _done(handler, run, result)
    except BaseException as raised:  # noqa: BLE001 - whatever a handler raises becomes an outcome
        return outcome_of(run, raised)


def _done(handler: Handler, run: Run | AsyncRun, result: Any) -> Outcome:
    if run.parked is not None or (run.stopped is not None and run.told):
        _unheeded(handler, run)
    if run.parked is not None:
        return Waiting(run.parked)
    if run.stopped is not None:
        return Stopped(run.stopped)
    if isinstance(run, AsyncRun) and run.calls is not None and (names := run.calls.never_awaited()):
        return Failed(_not_awaited(handler, names))
    try:
        return Done(run.lease.filed("result", result))
    except Invalid as wrong:
        # The work is done and its result cannot be kept: a failure that says so, never a lease left open.
        return Failed({"error": f"{handler.kind}: {wrong}", "retry": False, "code": RESULT_CODE})


def _not_awaited(handler: Handler, names: list[str]) -> dict[str, Any]:
    verbs = ", ".join(f"run.{name}()" for name in dict.fromkeys(names))
    return {
        "error": f"{handler.kind}: {verbs} was called and never awaited, so nothing of it was done; write `await` "
        "before it, and requeue the task",
        "retry": False, "code": NOT_AWAITED_CODE,
    }  # fmt: skip


def _unheeded(handler: Handler, run: Run | AsyncRun) -> None:
    """Its result counts for nothing; but whatever it did after the order, it did without a lease."""
    why = str(run.parked or run.stopped)
    about(
        WARNING, run.lease,
        "%s returned although it had been told to stop (%s): it catches BaseException, or CancelledError, and does "
        "not raise it again; catch Exception instead", handler.kind, why, reason=run.stopped or End.PARKED,
    )  # fmt: skip
    run.lease.seen(Sight(what=Saw.UNHEEDED, task_id=run.task_id, token=run.token, name=why))


def outcome_of(run: RunFacts, raised: BaseException) -> Outcome:
    """What a handler's exception means; those inside exception groups are found too."""
    if run.parked is not None:
        if (error := beside(raised)) is not None:
            about(WARNING, run.lease, "raised beside its wait: %r", error, reason=End.PARKED, raised=error)
        return Waiting(run.parked)
    if run.stopped is not None:
        return Stopped(run.stopped)
    if (stopped := _within(raised, LeaseStopped)) is not None:
        assert isinstance(stopped, LeaseStopped), "found by its class"
        return Stopped(stopped.cause)
    if isinstance(raised, LeaseLost) and run.lease.status == "lost":
        return Stopped(raised)
    if is_store_away(raised):
        return Stopped(
            LeaseLost(f"the store was away: {raised}", reason=LostReason.RELEASED, token=run.token, code=AWAY_CODE)
        )
    refused = _within(raised, Refused)
    if isinstance(refused, Refused) and refused.code in FOR_GOOD:
        return Failed({"error": str(refused), "retry": False, "code": refused.code})
    if isinstance(refused, Refused) and refused.code == BUSY:
        # Another task is at this very effect, which is nobody's failure: look again a little later.
        return Stopped(LeaseLost(str(refused), reason=LostReason.RELEASED, token=run.token, code=BUSY))
    verdict = _within(raised, Permanent) or _within(raised, Temporary) or raised
    failure = _failure(verdict)
    # With the handler's own frames where there is a bug to find; a verdict says what it has to say.
    frames = None if isinstance(verdict, (Permanent, Temporary)) else raised
    name = type(verdict).__name__
    about(INFO, run.lease, "raised %s: %s", name, failure["error"], reason=failure.get("code") or name, raised=frames)
    return Failed(failure)


def _failure(verdict: BaseException) -> dict[str, Any]:
    try:
        return LostInBlock.failure(verdict)
    except BaseException as wrong:  # noqa: BLE001 - its own text ends the program: not this one, and not its slot
        return {"error": UNREADABLE.format(name=type(verdict).__name__, why=type(wrong).__name__)}


def _within(raised: BaseException, kind: type[BaseException]) -> BaseException | None:
    if isinstance(raised, kind):
        return raised
    if isinstance(raised, BaseExceptionGroup):
        for inner in raised.exceptions:
            if (found := _within(inner, kind)) is not None:
                return found
    return None
