"""Answers as callers use them, for the blocking and the awaiting client alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from relet.client.belief import Belief, confirm_all
from relet.core.border import invalid
from relet.core.errors import Error, TaskCancelled, TaskFailed
from relet.core.model import State, Task
from relet.core.rules.renew import Renewed


class Bulk(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks a bulk verb changed, or would change."""

    ids: list[str]
    dry_run: bool

    @property
    def count(self) -> int:
        """How many."""
        return len(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """What a collection of stored bytes removed, or would remove."""

    n: int
    """How many artifacts."""
    bytes: int
    """Of all of them together."""
    dry_run: bool


class Found(NamedTuple):
    """A result that is there; it may itself be None."""

    value: Any


def result_of(task: Task, returns: Any, whole: Callable[[Any], Any]) -> Found | None:
    """The result of a finished task; None while it is not finished. Raises `TaskFailed`, `TaskCancelled`."""
    match task.state:
        case State.DONE:
            value = whole(task.result)  # which raises where looking at the task alone did not
            return Found(value if returns is None else converted(value, returns))
        case State.FAILED:
            raise TaskFailed(
                f"task {task.id} failed ({task.reason}): {task.error} → relet history {task.id}",
                code=None, task_id=task.id, reason=task.reason, error=task.error, error_code=task.code,
            )  # fmt: skip
        case State.CANCELLED:
            raise TaskCancelled(
                f"task {task.id} was cancelled: {task.reason or 'no reason given'} → relet history {task.id}",
                task_id=task.id, reason=task.reason,
            )  # fmt: skip
        case _:
            return None


def converted(value: Any, returns: Any) -> Any:
    """A JSON value as the type that was asked for. Raises `Invalid`."""
    try:
        if hasattr(returns, "model_validate"):
            return returns.model_validate(value)
        return msgspec.convert(value, returns)
    except (msgspec.ValidationError, ValueError) as wrong:
        raise invalid("returns", f"the result does not fit {returns!r}: {wrong}") from wrong


def outcomes_of(beliefs: Sequence[Belief], answers: Sequence[Renewed | Error], sent_ms: float) -> list[float | Error]:
    """The outcomes of many renewals, each taken in: seconds left, or the error as a value."""
    confirm_all(beliefs, answers, sent_ms)
    return [answer.left_ms / 1_000 if isinstance(answer, Renewed) else answer for answer in answers]
