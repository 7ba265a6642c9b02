"""A crash test from its first run to its report: without faults, then once for each plan, until one does not hold."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from relet.connect import DEFAULT_SCHEMA
from relet.core import border
from relet.core.border import invalid, shown
from relet.core.payload import encode
from relet.testing.crash.case import Case, case_of
from relet.testing.crash.drive import Run, run
from relet.testing.crash.invariants import Violation
from relet.testing.crash.nursery import Nurseries
from relet.testing.crash.plan import TIMED, Commit, Plan, Points, plans, read, told
from relet.testing.crash.report import CrashTestFailed, Finding, Report, command
from relet.testing.crash.told_to_end import Ending
from relet.worker.app import App, Handler

RUNS: Final = 100
RUNS_MAX: Final = 1_000_000
JOBS_MAX: Final = 256
SEED_MAX: Final = 1 << 53

Tell = Callable[[int, int], None]
"""Called after each run: how many are done, of how many."""


def crash_test(
    app: App | str, task: str | Handler, input: Any = None, *, runs: int = RUNS, seed: int | None = None,
    points: str = "all", point: str | None = None, ttl: Any = None, answers: dict[str, Any] | None = None,
    signals: dict[str, Any] | None = None, reconcile: Callable[..., Any] | None = None,
    verify: Callable[..., Any] | None = None, same_result: bool = False, limit: Any = "60s", jobs: int = 1,
    wrap: str | None = None, keep: str | Path | None = None, url: str | None = None,
) -> Report:  # fmt: skip
    """Run one task again and again, killing and freezing its holders; raises `CrashTestFailed`, an AssertionError.

    `app` is an App at the top of a module, or "module:app"; `task` a kind of it. First the task runs without
    faults, which counts its commits; then up to `runs` times with them. `points` chooses: "commits" (each thing
    at each commit), "random" (one to three faults, at commits or at any time, by the `seed`), or "all"; `point`
    is one plan, as a report names it. `answers` are decisions by name, `signals` payloads by name.

    `reconcile(effect)` says "applied", "not_applied" or None of an effect whose outcome only the other side can
    know; `verify(db, task, folder)` is a check of your own after each run that ended well. With `same_result`
    the result must be that of the run without faults. `limit` bounds each process, `jobs` runs so many at once,
    `keep` is a folder for the stores of runs that failed. With the `url` of a PostgreSQL database the store of each
    run is a schema of its own in there, which is removed after it. Raises `Invalid` for what does not fit.
    """
    case = case_of(
        app, task, input, answers=answers, limit=limit, ttl=ttl, signals=signals or {}, wrap=wrap,
        reconcile=reconcile, verify=verify, same_result=border.flag("same_result", same_result), url=url,
    )  # fmt: skip
    report = examine(case, runs=runs, seed=seed, points=points, point=point, jobs=jobs, keep=keep)
    if report.findings:
        raise CrashTestFailed(report)
    return report


def examine(
    case: Case, *, runs: int = RUNS, seed: int | None = None, points: str = "all", point: str | None = None,
    jobs: int = 1, keep: str | Path | None = None, tell: Tell | None = None,
    ending: Ending | None = None,
) -> Report:  # fmt: skip
    """The report of a crash test. Raises `Invalid` for what does not fit, and nothing for what does not hold.

    Once it is told to end it raises `ToldToEnd`, and leaves no process and no folder.
    """
    border.whole("runs", runs, least=1, most=RUNS_MAX)
    border.whole("jobs", jobs, least=1, most=JOBS_MAX)
    if points not in list(Points):
        raise invalid("points", f"{shown(points)} is none of {', '.join(Points)}")
    given = None if point is None else read(point)
    chosen = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    border.whole("seed", chosen, least=0, most=SEED_MAX)
    examination = _Examination(case, chosen, keep, tell, ending or Ending())
    try:
        return examination.report(runs, Points(points), given, jobs)
    finally:
        examination.close()


@contextmanager
def _schema(url: str | None) -> Iterator[str]:
    """Where in its database a run has its store."""
    if url is None:
        yield DEFAULT_SCHEMA
        return
    from relet.store.postgres.passing import passing_schema

    with passing_schema(url, "relet_crash") as schema:
        yield schema


class _Examination:
    def __init__(self, case: Case, seed: int, keep: str | Path | None, tell: Tell | None, ending: Ending) -> None:
        self._case = case
        self._seed = seed
        self._keep = None if keep is None else Path(keep)
        self._tell = tell
        self._began = time.monotonic()
        self._done: list[Run] = []
        self._expected: str | None = None
        self._commits: list[Commit] = []
        self._planned = 0
        self._nurseries = Nurseries(seed, ending)

    def close(self) -> None:
        self._nurseries.close()

    def report(self, runs: int, points: Points, given: Plan | None, jobs: int) -> Report:
        first = self._one(0, ())
        self._done.append(first)
        self._commits = first.commits
        if not first.violations and first.waits is None:
            self._expected = encode("result", first.task.result)
            wanted = [given] if given is not None else plans(
                self._commits, first.holder_ms, seed=self._seed, points=points, runs=runs
            )  # fmt: skip
            self._planned = len(wanted)
            self._all(wanted, jobs)
        return self._told()

    def _all(self, wanted: Sequence[Plan], jobs: int) -> None:
        for done in self._in_order(wanted, jobs):
            self._done.append(done)
            if self._tell is not None:
                self._tell(len(self._done) - 1, len(wanted))
            if done.violations:
                return

    def _in_order(self, wanted: Sequence[Plan], jobs: int) -> Iterator[Run]:
        if jobs == 1:
            yield from (self._one(number, plan) for number, plan in enumerate(wanted, 1))
            return
        with ThreadPoolExecutor(jobs) as pool:
            coming = [pool.submit(self._one, number, plan) for number, plan in enumerate(wanted, 1)]
            try:
                yield from (one.result() for one in coming)
            finally:
                for one in coming:
                    one.cancel()

    def _one(self, number: int, plan: Plan) -> Run:
        """One run, in a folder that is gone afterwards unless something is to be looked at."""
        with tempfile.TemporaryDirectory(prefix="relet-crash-") as folder, _schema(self._case.url) as schema:
            done = run(self._case, plan, Path(folder), f"crash-{self._seed}-{number}", self._nurseries, schema)
            if self._case.same_result and self._expected is not None and not done.violations and done.waits is None:
                done = self._held_to(done, self._expected)
            if done.violations and self._keep is not None:
                self._put_by(Path(folder), number)
        return done

    @staticmethod
    def _held_to(done: Run, expected: str) -> Run:
        found = encode("result", done.task.result)
        if found == expected:
            return done
        text = f"its result is {shown(found)}, and without faults it is {shown(expected)}"
        return done._replace(violations=[Violation("same_result", text)])

    def _put_by(self, folder: Path, number: int) -> None:
        import shutil

        assert self._keep is not None, "asked for"
        shutil.copytree(folder, self._keep / f"run-{number}", dirs_exist_ok=True)

    def _told(self) -> Report:
        after = self._done[1:]
        reached = {fault.at for one in after for fault in one.plan[: one.struck] if fault.action not in TIMED}
        findings = [
            Finding(
                rule=violation.rule, text=violation.text, point=told(one.plan),
                command=command(self._case, self._seed, told(one.plan)), words=one.words,
            )
            for one in self._done
            for violation in one.violations
        ]  # fmt: skip
        if self._done[0].waits is not None:
            raise invalid("reconcile", f"without any fault {self._done[0].waits}")
        return Report(
            app=self._case.app, kind=self._case.kind, seed=self._seed, ok=not findings, runs=len(after),
            planned=self._planned, commits=[str(commit) for commit in self._commits],
            points=len(reached & {commit.n for commit in self._commits}), struck=sum(one.struck for one in after),
            unreached=[told(one.plan) for one in after if one.struck < len(one.plan)],
            waited=[told(one.plan) for one in after if one.waits is not None], findings=findings,
            seconds=round(time.monotonic() - self._began, 1),
        )  # fmt: skip
