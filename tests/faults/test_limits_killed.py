"""Limits of a queue while workers are killed: never passed, and used in full again afterwards."""

import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.processes.whole import ask, is_whole
from tests.waiting import eventually

pytestmark = pytest.mark.faults

PROGRAMS = Path(__file__).parents[1] / "processes/programs"
LIMIT, OF_SHARE, SHARES, N, KILLS = 5, 2, 4, 600, 12
CHANGES = """
SELECT e.kind, t.share FROM events e JOIN tasks t ON t.seq = e.task_seq
WHERE e.kind <> 'submitted' AND e.token IS NOT NULL ORDER BY e.seq
"""
"""Every begin and end of a lease in the order in which they were committed."""


def test_under_kills_no_more_leases_are_open_than_the_limits_allow_and_they_are_used_in_full_again(db, start, url):
    db.queue("work", concurrency=LIMIT, share_concurrency=OF_SHARE)
    for share in range(SHARES):
        db.submit_many("work", [None] * (N // SHARES), share=f"s{share}")
    workers = [start(PROGRAMS / "crowded_worker.py", url, 4, 0.05) for _ in range(4)]
    for kill in range(1, KILLS + 1):
        # Late enough for a lease that the last one left behind to have lapsed, and its place to be used.
        eventually(lambda kill=kill: done(db) >= kill * N // (2 * KILLS), within=60)
        victim = eventually(lambda: holding(db, workers))
        workers.remove(victim)
        victim.send(signal.SIGKILL)
        workers.append(start(PROGRAMS / "crowded_worker.py", url, 4, 0.05))
    after_kills = len(ask(db, CHANGES))
    eventually(lambda: done(db) == N, within=120)

    held, of_share, most_after = 0, Counter(), 0
    lapses = 0
    for n, (kind, share) in enumerate(ask(db, CHANGES)):
        step = 1 if kind == "claimed" else -1
        lapses += kind == "lapsed"
        held, of_share[share] = held + step, of_share[share] + step
        assert held <= LIMIT, f"{held} leases at change {n}"
        assert of_share[share] <= OF_SHARE, f"{of_share[share]} leases of {share} at change {n}"
        if n > after_kills:
            most_after = max(most_after, held)
    assert lapses >= KILLS / 2, "they were killed while they held something, unless it had just ended"
    assert most_after == LIMIT
    assert held == 0
    assert is_whole(db)
    db.sweep()
    assert ask(db, "SELECT * FROM places") == []


def done(db):
    return db.stats("work").queues[0].done


def holding(db, workers):
    """One of the workers that hold something at this moment."""
    pids = {int(task.holder.split(":")[1]) for task in db.tasks("work", "leased") if task.live}
    return next((one for one in workers if one.pid in pids), None)
