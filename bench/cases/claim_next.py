"""B2: one client completes a task and takes the next one in the same durable commit."""

from __future__ import annotations

import time
from pathlib import Path

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE, Floor
from bench.measure import Ground, Side, in_turn

NAME = "B2"
BARS = (Bar("B2", "complete(claim_next=True): one client", "tasks/s", Judge.RATIO, bar=0.55, goal=0.75),)


def measure(ground: Ground) -> list[Result]:
    """Against the bare loop that does both in one commit."""
    tasks = ground.size(full=1_500, smoke=50)
    relet = relet_side(ground.folder / "b2-relet.db", tasks) if ground.with_relet else None
    pair = in_turn(ground, floor_side(ground.folder / "b2-floor.db", tasks), relet, rounds=5)
    return [Result(BARS[0], pair.floor, pair.relet, pair.fsync_us, pair.steady)]


def floor_side(path: Path, tasks: int) -> Side:
    """The bare loop, until nothing is left."""
    floor = Floor(path)

    def run() -> float:
        floor.fill(ready=tasks)
        done = 0
        began = time.perf_counter()
        grant = floor.claim()
        while grant is not None:
            grant = floor.complete_and_claim(grant)
            done += 1
        took = time.perf_counter() - began
        assert done == tasks
        return tasks / took

    return run


def relet_side(path: Path, tasks: int) -> Side:
    """The same loop through the client."""
    import relet

    db = relet.connect(f"sqlite:///{path}")

    def run() -> float:
        db.submit_many(QUEUE, [{"topic": "grain"}] * tasks)
        done = 0
        began = time.perf_counter()
        lease = db.claim(QUEUE, holder="A", ttl=60)
        while lease is not None:
            lease = lease.complete({"ok": True}, claim_next=True)
            done += 1
        took = time.perf_counter() - began
        assert done == tasks
        return tasks / took

    return run
