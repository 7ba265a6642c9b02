"""One attempt: call the handler, and say in one word how it ended."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, NamedTuple

import msgspec

from relet.client.lease import STORE_AWAY, UNREADABLE, LostInBlock
from relet.core import payload
from relet.core.errors import Error, Invalid, LeaseLost, LeaseStopped, Permanent, Temporary
from relet.core.model import LostReason
from relet.worker.app import Handler
from relet.worker.run import AsyncRun, Run, enter

log = logging.getLogger("relet.worker")

TIMEOUT_CODE = "RELET-TIMEOUT"
DEADLINE_CODE = "RELET-DEADLINE"
RESULT_CODE = "RELET-RESULT"
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


Outcome = Done | Failed | Stopped


def run_blocking(handler: Handler, run: Run) -> Outcome:
    """Call a `def` handler in this thread."""
    enter(run)
    try:
        args, named = handler.binding.arguments(run.lease.input)
        first = [run] if handler.binding.takes_run else []
        return _done(handler, run, handler.function(*first, *args, **named))
    except BaseException as raised:  # noqa: BLE001 - whatever a handler raises becomes an outcome
        return outcome_of(run, raised)


async def run_awaiting(handler: Handler, run: AsyncRun) -> Outcome:
    """Await an `async def` handler in this task."""
    enter(run)
    task = asyncio.current_task()
    assert task is not None, "coroutines run in tasks"
    run.bind(task)
    try:
        args, named = handler.binding.arguments(run.lease.input)
        first = [run] if handler.binding.takes_run else []
        return _done(handler, run, await handler.function(*first, *args, **named))
    except BaseException as raised:  # noqa: BLE001 - whatever a handler raises becomes an outcome
        return outcome_of(run, raised)


def _done(handler: Handler, run: Run | AsyncRun, result: Any) -> Outcome:
    if run.stopped is not None:
        return Stopped(run.stopped)
    try:
        return Done(msgspec.Raw(payload.encode("result", result).encode()))
    except Invalid as wrong:
        # The work is done and its result cannot be kept: a failure that says so, never a lease left open.
        return Failed({"error": f"{handler.kind}: {wrong}", "retry": False, "code": RESULT_CODE})


def outcome_of(run: Run | AsyncRun, raised: BaseException) -> Outcome:
    """What a handler's exception means; those inside exception groups are found too."""
    if run.stopped is not None:
        return Stopped(run.stopped)
    if (stopped := _within(raised, LeaseStopped)) is not None:
        assert isinstance(stopped, LeaseStopped), "found by its class"
        return Stopped(stopped.cause)
    if isinstance(raised, LeaseLost) and run.lease.status == "lost":
        return Stopped(raised)
    if isinstance(raised, STORE_AWAY):
        return Stopped(
            LeaseLost(f"the store was away: {raised}", reason=LostReason.RELEASED, token=run.token, code=AWAY_CODE)
        )
    verdict = _within(raised, Permanent) or _within(raised, Temporary) or raised
    failure = _failure(verdict)
    # With the handler's own frames where there is a bug to find; a verdict says what it has to say.
    frames = None if isinstance(verdict, (Permanent, Temporary)) else raised
    log.info("raised %s: %s", type(verdict).__name__, failure["error"], exc_info=frames)
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
