"""What must hold of a soak: in the store, in the ledger, and between the two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from relet.testing.crash.invariants import nothing_after_its_end, one_completion, tokens_grow
from relet.testing.crash.reading import Kept, Reading, Snapshot
from tests.processes.whole import ask, is_whole
from tests.soak.course import CHARGED, Course

WAL_MB_MAX = 64
GROWTH_MB_MAX = 10
TROUBLED_MAX = 2_000
"""Of so many tasks with more than one lease the whole history is read."""


def by_the_way(course: Course, wal_mb: float) -> Iterator[str]:
    """What must hold at every moment."""
    if wal_mb > WAL_MB_MAX:
        yield f"the log of the store had {wal_mb:.0f} MB"
    try:
        is_whole(course.db)
    except AssertionError as broken:
        yield f"the store is not whole: {broken}"
    yield from course.faults


def in_the_end(course: Course) -> Iterator[str]:
    """Everything is done, once, and by the holder that the ledger heard last."""
    tokens = dict(ask(course.db, "SELECT id, token FROM tasks WHERE state = 'done'"))
    if lost := course.submitted.keys() - tokens.keys():
        yield f"{len(lost)} tasks are not done, such as {sorted(lost)[:3]}"
    if strangers := tokens.keys() - course.submitted.keys():
        yield f"nobody submitted {sorted(strangers)[:3]}"
    yield from _writes(course, tokens)
    yield from _charges(course)
    yield from _histories(course)


def _writes(course: Course, tokens: dict[str, int]) -> Iterator[str]:
    """A fence keeps late holders out: tokens of a task grow, and the last one is that of the result."""
    heard: dict[str, list[int]] = {}
    for task, token in course.ledger.ask("SELECT task, token FROM writes ORDER BY seq"):
        heard.setdefault(task, []).append(token)
    for task, token in tokens.items():
        written = heard.get(task, [])
        if not written or written[-1] != token:
            yield f"{task} was completed under token {token}, the ledger heard {written}"
        if any(before >= after for before, after in pairwise(written)):
            yield f"the ledger of {task} went back or repeats itself: {written}"


def _charges(course: Course) -> Iterator[str]:
    """One key for each task that charges, and none for the others."""
    charged = sorted(task for (task,) in course.ledger.ask("SELECT task FROM charges"))
    wanted = sorted(task for task, kind in course.submitted.items() if kind in CHARGED)
    if charged != wanted:
        yield f"{len(wanted)} tasks charge once each, the ledger has {len(charged)} charges"


def _histories(course: Course) -> Iterator[str]:
    """The rules of the crash kit, for tasks that had more than one holder."""
    troubled = ask(
        course.db,
        "SELECT t.id FROM tasks t JOIN leases l ON l.task_seq = t.seq GROUP BY t.seq "
        f"ORDER BY count(*) DESC, t.seq LIMIT {TROUBLED_MAX}",
    )
    kept = {}
    for (task_id,) in troubled:
        kept[task_id] = Kept(course.db.task(task_id), list(course.db.history(task_id)), [], [], [])
    reading = Reading([], [Snapshot(kept, {})], [])
    for rule in (one_completion, tokens_grow, nothing_after_its_end):
        yield from rule(reading)
