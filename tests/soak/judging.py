"""What must hold of a soak: in the store, in the ledger, and between the two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from statistics import median

from relet.testing.crash.invariants import nothing_after_its_end, one_completion, tokens_grow
from relet.testing.crash.reading import Kept, Reading, Snapshot
from tests.processes.whole import ask, is_whole
from tests.soak.course import CHARGED, Course
from tests.soak.routes import Sample, Scene, Watched

WAL_MB_MAX = 64
WARM_SHARE = 1 / 3
"""Of a run, and of the life of a service: from then on memory must stay where it is."""
GROWTH_MB_MAX = 10
SERVICE_RISE_MB_MAX = 5
"""While it is warm, which of a run of 20 minutes are 8: a leak of 1 MB a minute is found."""
DESCRIPTORS_MAX, DESCRIPTORS_RISE_MAX = 500, 50
THREADS_MAX = 120
TROUBLED_MAX = 2_000
"""Of so many tasks with more than one lease the whole history is read."""
SAMPLES_LEAST = 10
SPARE_THREADS = 2
PAIRED_MAX = 300


def by_the_way(course: Course, wal_mb: float) -> Iterator[str]:
    """What must hold at every moment."""
    yield from log_grew([wal_mb])
    try:
        is_whole(course.db)
    except AssertionError as broken:
        yield f"the store is not whole: {broken}"
    yield from course.faults


def log_grew(samples_mb: Sequence[float]) -> Iterator[str]:
    """No sample of the log's size may be above 64 MB."""
    if samples_mb and (most_mb := max(samples_mb)) > WAL_MB_MAX:
        yield f"the log of the store had {most_mb:.1f} MB, more than {WAL_MB_MAX}"


def memory_grew(samples_mb: Sequence[float]) -> Iterator[str]:
    """The median of the last third of the samples may be 10 MB above that of the first third, and no more.

    They are the resident memory of one worker, at equal distances, from a third of the run on. Medians, since one
    look may fall into a burst of work; thirds, since a leak grows all the time.
    """
    if len(samples_mb) < 2:
        yield f"the memory of a worker was looked at {len(samples_mb)} times, too few to tell whether it grows"
        return
    third = max(1, len(samples_mb) // 3)
    before_mb, after_mb = median(samples_mb[:third]), median(samples_mb[-third:])
    if after_mb - before_mb > GROWTH_MB_MAX:
        yield f"the memory of a worker grew from {before_mb:.1f} to {after_mb:.1f} MB, by more than {GROWTH_MB_MAX}"


def risen(samples: Sequence[tuple[float, float]]) -> float:
    """By how much a line through the samples rises from the first to the last: the median slope of all pairs.

    They are pairs of seconds and a figure. A median, since one look may fall into a burst of work.
    """
    slopes = [
        (later - earlier) / (after_s - before_s)
        for (before_s, earlier), (after_s, later) in combinations(thinned(samples), 2)
    ]
    return median(slopes) * (samples[-1][0] - samples[0][0])


def thinned(samples: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """So many of them, at equal distances, that all pairs can be looked at."""
    return list(samples[:: len(samples) // PAIRED_MAX + 1])


def warm(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Without the first third of its life, in which all that it remembers fills up to its bounds."""
    begun_s, ended_s = samples[0].at_s, samples[-1].at_s
    return [one for one in samples if one.at_s >= begun_s + WARM_SHARE * (ended_s - begun_s)]


def full(samples: Sequence[Sample]) -> Sequence[Sample]:
    """From when it has about all the threads that it comes to have: each takes memory when it begins.

    All of them, where it had those in its second half only; that there are not too many is judged for itself.
    """
    most = max(one.threads for one in samples)
    first = next(n for n, one in enumerate(samples) if one.threads >= most - SPARE_THREADS)
    return samples[first:] if len(samples) - first >= max(SAMPLES_LEAST, len(samples) / 2) else samples


def service_grew(watched: Watched | None, scene: Scene) -> Iterator[str]:
    """One that lives for long stays as it is once it is warm, and none of them ever has much of anything."""
    if watched is None:
        return
    if len(watched.grown) < SAMPLES_LEAST:
        yield f"the service was looked at {len(watched.grown)} times, too few to tell whether it grows"
        return
    grown = warm(watched.grown)
    if not watched.restarts:
        yield "no service was begun again"
    rise_mb = risen([(one.at_s, one.memory_mb) for one in full(grown)])
    if rise_mb > SERVICE_RISE_MB_MAX:
        yield (
            f"the memory of the service rose by {rise_mb:.1f} MB, more than {SERVICE_RISE_MB_MAX}, to "
            f"{grown[-1].memory_mb:.1f}"
        )
    rise = risen([(one.at_s, one.descriptors) for one in grown])
    if rise > DESCRIPTORS_RISE_MAX:
        yield f"the open files of the service rose by {rise:.0f}, more than {DESCRIPTORS_RISE_MAX}"
    if watched.most.descriptors > DESCRIPTORS_MAX:
        yield f"the service had {watched.most.descriptors} files open, more than {DESCRIPTORS_MAX}"
    if watched.most.threads > THREADS_MAX:
        yield f"the service had {watched.most.threads} threads, more than {THREADS_MAX}"
    if (held := median(watched.held)) < scene.held_least:
        yield f"{held:.0f} leases were held at a time, fewer than {scene.held_least}"


def verified(course: Course) -> Iterator[str]:
    """What `relet verify` says of the store."""
    told = course.db.verify()
    for finding in told.findings:
        yield f"verify, {finding.rule}: {finding.row}: {finding.text}"
    if told.more:
        yield "verify found more than it lists"


def in_the_end(course: Course) -> Iterator[str]:
    """Everything is done, once, and by the holder that the ledger heard last; and `relet verify` finds nothing."""
    tokens = dict(ask(course.db, "SELECT id, token FROM tasks WHERE state = 'done'"))
    if lost := course.submitted.keys() - tokens.keys():
        yield f"{len(lost)} tasks are not done, such as {sorted(lost)[:3]}"
    if strangers := tokens.keys() - course.submitted.keys():
        yield f"nobody submitted {sorted(strangers)[:3]}"
    yield from _completions(course)
    yield from _writes(course, tokens)
    yield from _charges(course)
    yield from _histories(course)
    yield from verified(course)


def _completions(course: Course) -> Iterator[str]:
    """Of each task one result was taken, from the holder of its last token; each grant was larger than all before."""
    for task_id, times in ask(
        course.db,
        "SELECT t.id, count(l.token) FROM tasks t LEFT JOIN leases l ON l.task_seq = t.seq AND l.ended = 'completed' "
        "GROUP BY t.seq HAVING count(l.token) <> (t.state = 'done') OR max(l.token) <> t.token",
    ):
        yield f"{task_id} was completed {times} times, or not by its last holder"
    claims = [token for (token,) in ask(course.db, "SELECT token FROM events WHERE kind = 'claimed' ORDER BY seq")]
    if any(before >= after for before, after in pairwise(claims)):
        yield "tokens went back"


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
