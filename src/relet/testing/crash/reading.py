"""What is read of a run for judging it: its trace, and its store by the verbs that everybody has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from relet.core.errors import Error
from relet.core.model import Event, Task
from relet.core.work import Artifact, Checkpoint, Effect, Step
from relet.testing.crash.attend import all_effects, all_tasks
from relet.testing.crash.trace import Ack, Committed, Placed, Seen, read
from relet.testing.stores import SteeredClient


class Kept(NamedTuple):
    """One task with everything that is kept of it."""

    task: Task
    history: list[Event]
    steps: list[Step]
    checkpoints: list[Checkpoint]
    artifacts: list[Artifact]


class Snapshot(NamedTuple):
    """The store at one moment: after a holder ended, and before a frozen one was woken."""

    tasks: dict[str, Kept]
    effects: dict[str, Effect]


class Reading(NamedTuple):
    """All of one run."""

    lines: list[Placed]
    snapshots: list[Snapshot]
    """In the order in which they were taken; the last one is the end."""
    damaged: list[str]
    """Artifacts whose bytes cannot be read."""
    not_whole: Sequence[str] = ()
    """What does not hold of the store as a whole."""

    def commits(self) -> Iterator[tuple[int, Committed]]:
        """What was committed, with where in the trace it is said."""
        return ((at, line) for at, line in self.lines if isinstance(line, Committed))

    def acks(self, verb: str | None = None) -> Iterator[Ack]:
        """What the store said it had written."""
        return (ack for _, line in self.commits() for ack in line.acks if verb in (None, ack.verb))

    def seen(self) -> Iterator[Seen]:
        """What the witnesses saw."""
        return (line for _, line in self.lines if isinstance(line, Seen))

    @property
    def end(self) -> Snapshot:
        """The store as the run left it."""
        return self.snapshots[-1]


def snapshot(db: SteeredClient) -> Snapshot:
    """The store as it is now."""
    tasks = {
        task.id: Kept(task, db.history(task.id), db.steps(task.id), db.checkpoints(task.id), db.artifacts(task.id))
        for task in all_tasks(db)
    }
    return Snapshot(tasks, {effect.id: effect for effect in all_effects(db)})


def reading_of(db: SteeredClient, trace: Path, snapshots: list[Snapshot]) -> Reading:
    """A run that has come to its end."""
    damaged = []
    for kept in snapshots[-1].tasks.values():
        for artifact in kept.artifacts:
            try:
                with db.open(artifact.uri) as file:
                    while file.read(1 << 20):
                        pass
            except (Error, OSError) as wrong:
                damaged.append(f"{artifact.name} of {kept.task.id}: {wrong}")
    not_whole = [f"{one.rule}: {one.row}: {one.text}" for one in db.verify().findings]
    return Reading(read(trace), snapshots, damaged, not_whole)
