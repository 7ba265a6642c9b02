"""One run: a store of its own, and one holder after another under the plan, until nobody has anything left to do."""

from __future__ import annotations

import contextlib
import inspect
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

from relet.connect import DEFAULT_SCHEMA
from relet.core import limits
from relet.core.errors import Unavailable
from relet.core.model import State, Task
from relet.core.rules.sweep import Sweep
from relet.core.states import FINISHED
from relet.core.work import WaitKind
from relet.testing.clock import Clock
from relet.testing.crash.attend import Attendant, Stuck
from relet.testing.crash.case import Case, Verify
from relet.testing.crash.child import CLOCK, OUTSIDE, TRACE, Order
from relet.testing.crash.holder import Fate, Holder
from relet.testing.crash.invariants import Violation, judge
from relet.testing.crash.nursery import Nurseries
from relet.testing.crash.plan import TIMED, Commit, Plan
from relet.testing.crash.reading import Reading, Snapshot, reading_of, snapshot
from relet.testing.crash.trace import Struck, Trace, read
from relet.testing.stores import SteeredClient, open_store

HOLDERS_MAX: Final = 50
LOCK_PATIENCE_MS: Final = 100
LOCK_TRIES: Final = 100
STEP_S: Final = 0.002


class Run(NamedTuple):
    """What became of a run."""

    plan: Plan
    task: Task
    reading: Reading
    violations: list[Violation]
    struck: int
    """How many faults of the plan were done."""
    holder_ms: int
    """How long a holder took, on the average."""
    waits: str | None
    """What it waits for at its end, where nobody can know: an unknown effect is not repeated blindly."""
    words: str
    """The end of what its last holders printed."""

    @property
    def commits(self) -> list[Commit]:
        """What was committed, in order."""
        return [Commit(line.n, line.verb, line.name) for _, line in self.reading.commits()]


def run(
    case: Case, plan: Plan, folder: Path, task_id: str, nurseries: Nurseries, schema: str = DEFAULT_SCHEMA
) -> Run:  # fmt: skip
    """Do it, in an empty folder, or beside it in an empty schema of the case's database; and judge it."""
    driving = _Driving(case, plan, folder, task_id, nurseries, schema)
    try:
        return driving.go()
    finally:
        driving.close()


class _Driving:
    def __init__(
        self, case: Case, plan: Plan, folder: Path, task_id: str, nurseries: Nurseries, schema: str
    ) -> None:  # fmt: skip
        self._case, self._schema = case, schema
        self._plan = plan
        self._folder = folder
        self._task_id = task_id
        self._nurseries = nurseries
        self._trace = Trace(folder / TRACE)
        self._db: SteeredClient = open_store(
            folder, Clock(folder / CLOCK), holder="crashtest", url=case.url, schema=schema
        )  # fmt: skip
        self._attendant = Attendant(case, self._db, self._trace)
        self._holders: list[Holder] = []
        self._snapshots: list[Snapshot] = []
        self._found: list[Violation] = []
        self._asleep: Holder | None = None

    def close(self) -> None:
        """Nothing is left running."""
        for holder in self._holders:
            holder.close()
        self._trace.close()
        self._db.close()

    def go(self) -> Run:
        """Submit, and let holders work until all is done."""
        self._db.submit(
            self._case.queue, self._case.input, kind=self._case.kind, id=self._task_id, ttl=self._case.ttl,
            max_attempts=limits.ATTEMPTS_MAX, max_losses=limits.ATTEMPTS_MAX,
        )  # fmt: skip
        began = time.monotonic()
        while self._attendant.go_on():
            if len(self._holders) >= HOLDERS_MAX:
                self._find("it_ends", f"{HOLDERS_MAX} holders in a row did not bring it to its end")
                break
            if not self._one_more():
                break
        if self._asleep is not None:
            self._wake()
        holder_ms = self._mean_ms(began)
        task = self._db.task(self._task_id)
        waits = self._judge_end(task)
        reading = reading_of(self._db, self._trace.path, self._snapshots)
        self._found += judge(reading)
        if task.state is State.DONE and not self._found:
            self._verify(task)
        return Run(self._plan, task, reading, self._found, self._struck, holder_ms, waits, self._words())

    @property
    def _struck(self) -> int:
        return sum(isinstance(placed.line, Struck) for placed in read(self._trace.path))

    def _mean_ms(self, began: float) -> int:
        return int((time.monotonic() - began) * 1_000) // max(1, len(self._holders))

    def _one_more(self) -> bool:
        """Let one more holder work; False when it did not end by itself and the run is over."""
        struck = self._struck
        fault = self._plan[struck] if struck < len(self._plan) else None
        number = len(self._holders) + 1
        # What is done at a time is done from here.
        within = fault is not None and fault.action not in TIMED
        order = Order(
            app=self._case.app, folder=str(self._folder), holder=f"holder-{number}",
            fault=str(fault) if within else "none", wrap=self._case.wrap, sys_path=sys.path, url=self._case.url,
            schema=self._schema, chance=f"{self._nurseries.seed}:{number}",
        )  # fmt: skip
        holder = Holder(self._nurseries.of(number), order, fault, number, self._case.limit_s)
        self._holders.append(holder)
        fate = holder.watch()
        if fate is Fate.FROZEN:
            self._rest(holder)
        if holder.struck_by_time:
            self._trace.add(Struck(holder.pid, str(fault)))
        self._snapshots.append(snapshot(self._db))
        if self._asleep is not None:
            self._wake()
        if fate is Fate.FROZEN:
            self._asleep = holder
        return self._judge_fate(holder, fate)

    def _rest(self, holder: Holder) -> None:
        """One that is frozen while it writes stops everybody else, which is not what was planned: a bit later."""
        for _ in range(LOCK_TRIES):
            if self._is_free():
                return
            holder.thaw()
            time.sleep(STEP_S)
            holder.freeze()
            if holder.watch() is not Fate.FROZEN:
                return

    def _is_free(self) -> bool:
        """Does nobody who is stopped keep others from writing."""
        if self._case.url is not None:
            from relet.store.postgres.passing import nobody_within

            return nobody_within(self._case.url, self._schema)
        with contextlib.suppress(Unavailable):
            self._db.backend.call(Sweep(), patience_ms=LOCK_PATIENCE_MS)
            return True
        return False

    def _wake(self) -> None:
        """Let the frozen one go on, beside whatever the last holder has left."""
        assert self._asleep is not None, "looked at before"
        holder, self._asleep = self._asleep, None
        self._judge_fate(holder, holder.wake())
        self._snapshots.append(snapshot(self._db))

    def _judge_fate(self, holder: Holder, fate: Fate) -> bool:
        if fate is Fate.OVERTIME:
            self._find("it_ends", f"a holder did not end within {self._case.limit_s:g} s")
            return False
        if fate is Fate.EXITED and holder.code not in (0, -9):
            self._find("it_ends", f"a holder ended by itself with exit code {holder.code}")
            return False
        return True

    def _judge_end(self, task: Task) -> str | None:
        """The task must be done; or wait for what only a person can know, which is no fault."""
        stuck: Stuck | None = self._attendant.stuck
        if self._found or task.state is State.DONE:
            return None
        if stuck is not None and stuck.wait.kind is WaitKind.RECONCILE:
            return stuck.why
        why = f": {stuck.why}" if stuck is not None else f": {task.error}" if task.error else ""
        if task.state in FINISHED or stuck is not None:
            self._find("it_is_done", f"task {task.id} ends {task.state}{why}")
        else:
            self._find("it_ends", f"task {task.id} is {task.state}, and nobody can go on with it{why}")
        return None

    def _verify(self, task: Task) -> None:
        """The user's own check."""
        if self._case.verify is None:
            return
        try:
            given = (self._db, task, self._folder / OUTSIDE)[: _taken(self._case.verify)]
            said = self._case.verify(*given)
        except AssertionError as wrong:
            self._find("verify", str(wrong) or "an assertion of it failed")
        except Exception as wrong:  # noqa: BLE001 - a check that breaks has found something, or must be mended
            self._find("verify", f"it raised {type(wrong).__name__}: {wrong}")
        else:
            if said is False:
                self._find("verify", "it answered False")

    def _find(self, rule: str, text: str) -> None:
        self._found.append(Violation(rule, text))

    def _words(self) -> str:
        said = [f"--- {number}: {words}" for number, one in enumerate(self._holders, 1) if (words := one.words())]
        return "\n".join(said[-3:])


def _taken(verify: Verify) -> int:
    """How many of database, task and folder it takes."""
    kinds = [one.kind for one in inspect.signature(verify).parameters.values()]
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return 3 if inspect.Parameter.VAR_POSITIONAL in kinds else sum(kind in by_place for kind in kinds)
