"""Everybody but the holders: the clock, people, other programs, and whoever finds out what became of an effect."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from relet.client.durable.sight import Saw
from relet.core import limits
from relet.core.model import State, Task
from relet.core.payload import decode
from relet.core.rules.effect import named_effect
from relet.core.states import FINISHED
from relet.core.work import Effect, EffectState, Outcome, Wait, WaitKind
from relet.testing.crash.case import Case
from relet.testing.crash.trace import Seen, Settled, Trace, read
from relet.testing.stores import SteeredClient

BY: Final = "crashtest"
BEYOND_S: Final = 0.001


class Stuck(NamedTuple):
    """A question that nobody here can answer."""

    wait: Wait
    why: str


def all_tasks(db: SteeredClient) -> list[Task]:
    """Every task of the store, in the order in which they were made."""
    found: list[Task] = []
    while page := db.tasks(limit=limits.PAGE_ITEMS_MAX, after=found[-1].id if found else None):
        found += page
    return found


def all_effects(db: SteeredClient) -> list[Effect]:
    """Every effect of the store."""
    found: list[Effect] = []
    while page := db.effects(limit=limits.PAGE_ITEMS_MAX, after=found[-1].id if found else None):
        found += page
    return found


class Attendant:
    """Looks at a store between two holders, and makes it possible for the next one to go on."""

    def __init__(self, case: Case, db: SteeredClient, trace: Trace) -> None:
        self._case = case
        self._db = db
        self._path = trace.path
        self._trace = trace
        self.stuck: Stuck | None = None

    def go_on(self) -> bool:
        """Is there anything left that a holder can do; time passes until it can."""
        open_ = [task for task in all_tasks(self._db) if task.kind in self._case.kinds and task.state not in FINISHED]
        self._answer([task for task in open_ if task.state is State.WAITING])
        left = [task for task in map(self._again, open_) if task.state not in FINISHED]
        if any(task.state is State.READY and self._is_due(task.due_at) for task in left):
            return True
        # Leases end first: whoever held them is dead or frozen, and time passes for all at once.
        if leased := [task.expires_at for task in left if task.expires_at is not None]:
            self._pass_until(max(leased))
            return True
        due = [task.due_at for task in left if task.state is State.READY]
        due += [wait.due_at for task in left if task.state is State.WAITING for wait in self._waits(task)]
        if moments := [moment for moment in due if moment is not None]:
            self._pass_until(min(moments))
            return True
        return any(task.state is State.LEASED for task in left)

    def _again(self, task: Task) -> Task:
        return self._db.task(task.id)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._db.clock.wall_ms() / 1_000, UTC)

    def _is_due(self, moment: datetime | None) -> bool:
        return moment is None or moment <= self._now()

    def _pass_until(self, moment: datetime) -> None:
        self._db.clock.advance(max(0.0, (moment - self._now()).total_seconds()) + BEYOND_S)

    def _waits(self, task: Task) -> list[Wait]:
        return [wait for wait in self._db.waits(task.id) if wait.open]

    def _answer(self, waiting: list[Task]) -> None:
        self.stuck = None
        for task in waiting:
            for wait in self._waits(task):
                self._meet(wait)

    def _meet(self, wait: Wait) -> None:
        match wait.kind:
            case WaitKind.APPROVAL:
                answer = self._case.answers.get(wait.name)
                if answer is not None:
                    self._db.decide(wait.task_id, wait.name, str(answer.kind), answer.value, by=BY)
                elif wait.due_at is None:
                    self.stuck = Stuck(wait, f"it waits for a decision on {wait.name!r}: give an answer to it")
            case WaitKind.SIGNAL:
                if wait.name in self._case.signals:
                    self._db.signal(wait.task_id, wait.name, self._case.signals[wait.name])
                elif wait.due_at is None:
                    self.stuck = Stuck(wait, f"it waits for the signal {wait.name!r}: give its payload")
            case WaitKind.TIMER:
                pass
            case WaitKind.RECONCILE:
                self._reconcile(wait)

    def _reconcile(self, wait: Wait) -> None:
        effect_id = named_effect(wait.name)
        (effect,) = [one for one in all_effects(self._db) if one.id == effect_id]
        if effect.state is not EffectState.UNKNOWN:
            return
        outcome, receipt = self._found(effect)
        if outcome is None:
            why = f"effect {effect.name!r} may have happened or not, and waits to be reconciled"
            self.stuck = Stuck(wait, f"{why}; say what became of it by --reconcile MODULE:FUNCTION")
            return
        self._db.reconcile(effect.id, outcome, receipt, by=BY)
        self._trace.add(Settled(effect.id, outcome))

    def _found(self, effect: Effect) -> tuple[str | None, Any]:
        """What became of it: as the user's function says, else as the trace shows, where it does."""
        if self._case.reconcile is not None:
            said = self._case.reconcile(effect)
            return said if isinstance(said, tuple) else (said, None)
        unsure = False
        for _, line in read(self._path):
            if not isinstance(line, Seen) or line.sight.effect != effect.id:
                continue
            match line.sight.what:
                case Saw.ANSWERED:
                    return str(Outcome.APPLIED), None if line.sight.receipt is None else decode(line.sight.receipt)
                case Saw.CALLED:
                    unsure = True
                case Saw.REFUSED:
                    unsure = False
                case _:
                    pass
        return (None, None) if unsure else (str(Outcome.NOT_APPLIED), None)
