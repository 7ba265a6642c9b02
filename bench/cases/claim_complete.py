"""B1: one client takes a task and completes it, two durable commits each."""

from __future__ import annotations

import time
from pathlib import Path

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE, Floor
from bench.measure import Ground, Side, in_turn

NAME = "B1"
BARS = (Bar("B1", "claim, then complete: one client", "tasks/s", Judge.RATIO, bar=0.60, goal=0.80),)


def measure(ground: Ground) -> list[Result]:
    """Against the bare loop with its own commit for each."""
    tasks = ground.size(full=1_000, smoke=50)
    relet = relet_side(ground.folder / "b1-relet.db", tasks) if ground.with_relet else None
    pair = in_turn(ground, floor_side(ground.folder / "b1-floor.db", tasks), relet, rounds=5)
    return [Result(BARS[0], pair.floor, pair.relet, pair.fsync_us, pair.steady)]


def floor_side(path: Path, tasks: int) -> Side:
    """The bare loop."""
    floor = Floor(path)

    def run() -> float:
        floor.fill(ready=tasks)
        began = time.perf_counter()
        for _ in range(tasks):
            grant = floor.claim()
            assert grant is not None
            floor.complete(grant)
        return tasks / (time.perf_counter() - began)

    return run


def relet_side(path: Path, tasks: int) -> Side:
    """The same loop through the client."""
    import relet

    db = relet.connect(f"sqlite:///{path}")

    def run() -> float:
        db.submit_many(QUEUE, [{"topic": "grain"}] * tasks)
        began = time.perf_counter()
        for _ in range(tasks):
            lease = db.claim(QUEUE, holder="A", ttl=60)
            assert lease is not None
            lease.complete({"ok": True})
        return tasks / (time.perf_counter() - began)

    return run
