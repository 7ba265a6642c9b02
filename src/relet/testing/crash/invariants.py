"""What must hold after any run, judged from the trace and from what everybody can read; no rule of relet is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from relet.client.durable.sight import Saw
from relet.core import payload
from relet.core.invariants import claims_grow, completed_once, in_order, never_written_over
from relet.core.model import State
from relet.core.states import FINISHED
from relet.testing.crash.contracts import effects_within_contract
from relet.testing.crash.reading import Reading


class Violation(NamedTuple):
    """A rule that did not hold, and what was seen."""

    rule: str
    text: str


Rule = Callable[[Reading], Iterator[str]]

ENDING: Final = frozenset({"complete", "fail", "release", "park"})
"""Verbs that may be repeated after they have ended their lease."""
TESTIMONY: Final = frozenset({"end_effect"})
"""What a holder may say too late: it is kept as evidence, and moves nothing."""


def one_completion(reading: Reading) -> Iterator[str]:
    """A task is completed once, and its result is the one that was acknowledged."""
    for kept in reading.end.tasks.values():
        task = kept.task
        acks = [ack for ack in reading.acks("complete") if ack.task_id == task.id]
        yield from completed_once(task.id, task.state, kept.history)
        if acks and task.state is not State.DONE:
            yield f"the completion of task {task.id} was acknowledged, and it is {task.state}"
        if len({ack.token for ack in acks}) > 1:
            yield f"task {task.id} took results of tokens {', '.join(str(ack.token) for ack in acks)}"
        if task.state is State.DONE and acks and acks[-1].digest:
            said = payload.digest(payload.encode("result", task.result))
            if any(ack.digest != said for ack in acks):
                yield f"task {task.id} keeps another result than the one it acknowledged"


def tokens_grow(reading: Reading) -> Iterator[str]:
    """Each lease of a task has a larger token than the one before, and no two processes have the same."""
    for task_id, kept in reading.end.tasks.items():
        yield from claims_grow(task_id, kept.history)
    owners: dict[int, tuple[str, int]] = {}
    for _, line in reading.commits():
        for grant in line.granted:
            owner = owners.setdefault(grant.token, (grant.task_id, line.pid))
            if owner != (grant.task_id, line.pid):
                yield f"token {grant.token} was given to two: task {owner[0]} and task {grant.task_id}"


def nothing_after_its_end(reading: Reading) -> Iterator[str]:
    """What happens under a lease happens between its claim and its end, and leases of a task do not overlap."""
    for kept in reading.end.tasks.values():
        yield from in_order(kept.history)


def late_writes_refused(reading: Reading) -> Iterator[str]:
    """Once somebody else was granted a task, nothing sent under its earlier tokens is acknowledged."""
    newest: dict[str, tuple[int, int]] = {}
    ended: set[tuple[str, int]] = set()
    for at, line in reading.commits():
        for ack in line.acks:
            token, since = newest.get(ack.task_id, (0, 0))
            repeats = ack.verb in ENDING and (ack.verb, ack.token) in ended
            if 0 < ack.token < token and line.since > since and ack.verb not in TESTIMONY and not repeats:
                yield (
                    f"task {ack.task_id}: {ack.verb} {ack.name} was accepted under token {ack.token}, though token "
                    f"{token} had been granted before it was sent"
                )
            if ack.verb in ENDING:
                ended.add((ack.verb, ack.token))
        for grant in line.granted:
            if grant.token > newest.get(grant.task_id, (0, 0))[0]:
                newest[grant.task_id] = (grant.token, at)


def steps_stand(reading: Reading) -> Iterator[str]:
    """One value for each step, for ever."""
    values: dict[tuple[str, str, str], str] = {}
    for shot in reading.snapshots:
        for task_id, kept in shot.tasks.items():
            here = {
                (task_id, step.name, f"#{step.n}" if step.key is None else f"={step.key}"): payload.digest(
                    payload.encode("value", step.value)
                )
                for step in kept.steps
            }
            for known, value in values.items():
                if known[0] == task_id and here.get(known) != value:
                    yield f"step {known[1]} {known[2]} of task {task_id} {'changed' if known in here else 'is gone'}"
            values.update(here)
    for ack in reading.acks("keep_step"):
        kept_value = values.get((ack.task_id, ack.name, ack.slot))
        if kept_value is None:
            yield f"step {ack.name} {ack.slot} of task {ack.task_id} was acknowledged, and is not kept"
        elif ack.digest and kept_value != ack.digest:
            yield f"step {ack.name} {ack.slot} of task {ack.task_id} was acknowledged with another value"


def checkpoints_monotone(reading: Reading) -> Iterator[str]:
    """Versions of a checkpoint only grow, and the newest is what was acknowledged last."""
    newest: dict[tuple[str, str], int] = {}
    values: dict[tuple[str, str, int], str] = {}
    for shot in reading.snapshots:
        here: dict[tuple[str, str], int] = {}
        for task_id, kept in shot.tasks.items():
            for one in kept.checkpoints:
                here[task_id, one.name] = max(one.version, here.get((task_id, one.name), 0))
                said = payload.digest(payload.encode("value", one.value))
                if values.setdefault((task_id, one.name, one.version), said) != said:
                    yield f"version {one.version} of checkpoint {one.name} of task {task_id} changed"
        for (task_id, name), version in newest.items():
            if here.get((task_id, name), 0) < version:
                yield f"checkpoint {name} of task {task_id} went back from version {version}"
        newest = here
    yield from _acknowledged(reading, newest, values)
    for task_id, kept in reading.end.tasks.items():
        yield from never_written_over(task_id, kept.checkpoints)


def _acknowledged(
    reading: Reading, newest: dict[tuple[str, str], int], values: dict[tuple[str, str, int], str]
) -> Iterator[str]:
    for ack in reading.acks("save"):
        if newest.get((ack.task_id, ack.name), 0) < ack.n:
            yield f"version {ack.n} of checkpoint {ack.name} of task {ack.task_id} was acknowledged, and is not kept"
        elif ack.digest and values.get((ack.task_id, ack.name, ack.n), ack.digest) != ack.digest:
            yield f"version {ack.n} of checkpoint {ack.name} of task {ack.task_id} is not what was acknowledged"


def artifacts_whole(reading: Reading) -> Iterator[str]:
    """An artifact that was acknowledged is listed, and its bytes are there."""
    yield from reading.damaged
    for ack in reading.acks("attach"):
        kept = reading.end.tasks[ack.task_id].artifacts
        if not any(one.name == ack.name and one.sha256 == ack.digest for one in kept):
            yield f"artifact {ack.name} of task {ack.task_id} was acknowledged, and is not listed"


def children_exist(reading: Reading) -> Iterator[str]:
    """A child that was submitted is there."""
    for ack in reading.acks("submit"):
        if ack.slot not in reading.end.tasks:
            yield f"child {ack.slot} of task {ack.task_id} was acknowledged, and is not there"


def finished_is_finished(reading: Reading) -> Iterator[str]:
    """Of a finished task nothing changes any more, whoever wakes up later."""
    for before, after in pairwise(reading.snapshots):
        for task_id, kept in before.tasks.items():
            if kept.task.state in FINISHED and after.tasks.get(task_id) != kept:
                yield f"task {task_id} was {kept.task.state}, and changed after that"


def orders_heeded(reading: Reading) -> Iterator[str]:
    """A handler that is told to stop does not return as if nothing had been."""
    for line in reading.seen():
        if line.sight.what is Saw.UNHEEDED:
            yield (
                f"the handler of task {line.sight.task_id} returned under token {line.sight.token} although it had "
                f"been told to stop ({line.sight.name}): it catches BaseException or CancelledError, and does not "
                "raise it again. What it does after that, it does without a lease; catch Exception instead"
            )


def store_is_whole(reading: Reading) -> Iterator[str]:
    """All holds that must hold of any store."""
    yield from reading.not_whole


RULES: Final[tuple[Rule, ...]] = (
    one_completion, tokens_grow, nothing_after_its_end, late_writes_refused, steps_stand, checkpoints_monotone,
    artifacts_whole, children_exist, finished_is_finished, orders_heeded, effects_within_contract,
    store_is_whole,
)  # fmt: skip


def judge(reading: Reading) -> list[Violation]:
    """What did not hold; empty when all did."""
    return [Violation(rule.__name__, text) for rule in RULES for text in rule(reading)]
