"""Many leases lapse in one second: the store answers, takeovers are spread, every task is done once."""

import json
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.processes.whole import ask, is_whole
from tests.waiting import eventually

pytestmark = pytest.mark.faults

PROGRAMS = Path(__file__).parents[1] / "processes/programs"
N = 400
TTL_S = 10
STALL_S = 2.0
"""How long one small verb may take meanwhile; a store that stalls takes a ttl."""


def test_ts_03_400_leases_that_lapse_at_once_are_taken_over_in_a_spread_and_each_task_is_done_once(db, start, url):
    db.submit_many("work", [None] * N)
    holder = start(PROGRAMS / "doomed_holder.py", url, "work", N, TTL_S)
    assert int(holder.line()) == N
    holder.send(signal.SIGKILL)
    workers = [start(PROGRAMS / "crowded_worker.py", url, 8, 0.001) for _ in range(2)]
    slowest = 0.0

    def all_done():
        """Other work goes on: a task is submitted, claimed and completed in time."""
        nonlocal slowest
        began = time.monotonic()
        db.submit("other")
        db.claim("other").complete()
        slowest = max(slowest, time.monotonic() - began)
        return db.stats("work").queues[0].done == N

    eventually(all_done, within=90)
    assert slowest < STALL_S
    for worker in workers:
        worker.send(signal.SIGTERM)
    begun = [line.split()[0] for worker in workers for line in worker.rest()]
    assert (len(begun), len(set(begun))) == (N, N), "each was begun once after the one lapse"
    assert Counter(kind for (kind,) in ask(db, OF_WORK)) == {
        "submitted": N, "claimed": 2 * N, "lapsed": N, "completed": N,
    }  # fmt: skip
    due = [at + json.loads(detail)["delay_ms"] for at, detail in ask(db, LAPSES)]
    seconds = Counter((ms - min(due)) // 1_000 for ms in due)
    assert max(seconds.values()) <= 0.15 * N, seconds
    assert max(due) - min(due) <= 10_000 + 2_000, "and nobody waits longer than the spread"
    assert is_whole(db)


OF_WORK = "SELECT e.kind FROM events e JOIN tasks t ON t.seq = e.task_seq WHERE t.queue = 'work'"
LAPSES = f"SELECT at_ms, detail FROM ({OF_WORK.replace('e.kind', 'e.*')}) WHERE kind = 'lapsed'"
