"""inspect_work: what a task has kept, what it asks, what it has done outside; for everybody, and without touching."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core import limits
from relet.core.backend import Request
from relet.core.errors import Error, NotFound
from relet.core.fields import AfterStep, Cursor, Digests, Name, PageItems, TaskId
from relet.core.operation import Operation
from relet.core.rules.absent import no_task
from relet.core.tx import Tx
from relet.core.work import Artifact, Checkpoint, Effect, EffectState, Step, Wait


class Steps(Request, frozen=True, kw_only=True):
    """A page of the steps of one task, in the order of name and slot."""

    task_id: TaskId
    after: AfterStep = ("", "")
    limit: PageItems = limits.PAGE_ITEMS_MAX


class StepPage(msgspec.Struct, frozen=True, kw_only=True):
    """Steps, and where to go on; None after the last page."""

    steps: list[Step]
    cursor: tuple[str, str] | None


async def steps(tx: Tx, ask: Steps) -> StepPage | Error:
    """What its holders need not call again."""
    task_seq = await _seq(tx, ask.task_id)
    if isinstance(task_seq, Error):
        return task_seq
    found, cursor = await tx.find_steps(task_seq, ask.after, ask.limit)
    return StepPage(steps=found, cursor=cursor)


class Checkpoints(Request, frozen=True, kw_only=True):
    """The kept versions of a task's checkpoints, of one name or all."""

    task_id: TaskId
    name: Name | None = None


async def checkpoints(tx: Tx, ask: Checkpoints) -> list[Checkpoint] | Error:
    """By name, newest first."""
    task_seq = await _seq(tx, ask.task_id)
    return task_seq if isinstance(task_seq, Error) else await tx.find_checkpoints(task_seq, ask.name)


class Artifacts(Request, frozen=True, kw_only=True):
    """The artifacts of one task."""

    task_id: TaskId


async def artifacts(tx: Tx, ask: Artifacts) -> list[Artifact] | Error:
    """In the order in which they were attached."""
    task_seq = await _seq(tx, ask.task_id)
    return task_seq if isinstance(task_seq, Error) else await tx.find_artifacts(task_seq)


class Waits(Request, frozen=True, kw_only=True):
    """Questions: those of one task, answered or not, or the open ones of a queue or of all."""

    task_id: TaskId | None = None
    queue: Name | None = None
    after: Cursor = 0
    limit: PageItems = limits.PAGE_ITEMS


class WaitPage(msgspec.Struct, frozen=True, kw_only=True):
    """Questions, oldest first, and where to go on; None after the last page."""

    waits: list[Wait]
    cursor: int | None


async def waits(tx: Tx, ask: Waits) -> WaitPage | Error:
    """What people are asked."""
    task_seq = None if ask.task_id is None else await _seq(tx, ask.task_id)
    if isinstance(task_seq, Error):
        return task_seq
    found, cursor = await tx.find_waits(task_seq, ask.queue, ask.after, ask.limit)
    return WaitPage(waits=found, cursor=cursor)


class Effects(Request, frozen=True, kw_only=True):
    """Effects in one state or all, of one task or all; `after` is the last id of the page before."""

    state: EffectState | None = None
    task_id: TaskId | None = None
    after: Name | None = None
    limit: PageItems = limits.PAGE_ITEMS


async def effects(tx: Tx, ask: Effects) -> list[Effect] | Error:
    """With their receipts, and with what was said of them too late."""
    if ask.after is not None and await tx.lock_effect(ask.after) is None:
        return NotFound(f"after: there is no effect {ask.after} here", field="after", effect=ask.after)
    return await tx.find_effects(ask.state, ask.task_id, ask.after, ask.limit)


class Referenced(Request, frozen=True, kw_only=True):
    """Which of these digests of bytes are named by anything that is kept."""

    digests: Digests


async def referenced(tx: Tx, ask: Referenced) -> list[str]:
    """Those that must stay, whoever they belong to."""
    return await tx.find_referenced(ask.digests)


async def _seq(tx: Tx, task_id: str) -> int | NotFound:
    seq = await tx.find_seq(task_id)
    return await no_task(tx, task_id) if seq is None else seq


STEPS: Final = Operation("steps", Steps, StepPage, steps, "The kept calls of a task.", writes=False)
CHECKPOINTS: Final = Operation(
    "checkpoints", Checkpoints, list[Checkpoint], checkpoints, "The saved values of a task.", writes=False
)
ARTIFACTS: Final = Operation(
    "artifacts", Artifacts, list[Artifact], artifacts, "The attached bytes of a task.", writes=False
)
WAITS: Final = Operation("waits", Waits, WaitPage, waits, "What people are asked.", writes=False)
EFFECTS: Final = Operation(
    "effects", Effects, list[Effect], effects, "Side effects and their receipts.", writes=False
)
REFERENCED: Final = Operation(
    "referenced",
    Referenced,
    list[str],
    referenced,
    "Which stored bytes are still named.",
    writes=False,
    for_agents=False,
)
