"""B1: one client takes a task and completes it, two durable commits each."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE, Floor
from bench.measure import Ground, Side, in_turn

if TYPE_CHECKING:
    import relet

NAME = "B1"
BARS = (Bar("B1", "claim, then complete: one client", "tasks/s", Judge.RATIO, bar=0.60, goal=0.80),)


class BarePairs(Protocol):
    """The bare verbs of a floor, on whichever engine."""

    def fill(self, ready: int) -> None: ...
    def claim(self) -> Any: ...
    def complete(self, grant: Any) -> None: ...


def measure(ground: Ground) -> list[Result]:
    """Against the bare loop with its own commit for each."""
    tasks = ground.size(full=1_000, smoke=50)
    relet = relet_side(connected(ground.folder / "b1-relet.db"), tasks) if ground.with_relet else None
    pair = in_turn(ground, floor_side(Floor(ground.folder / "b1-floor.db"), tasks), relet, rounds=5)
    return [Result(BARS[0], pair.floor, pair.relet, pair.fsync_us, pair.steady)]


def connected(path: Path) -> relet.Client:
    """A client of a new file."""
    import relet

    return relet.connect(f"sqlite:///{path}")


def floor_side(floor: BarePairs, tasks: int) -> Side:
    """The bare loop."""

    def run() -> float:
        floor.fill(ready=tasks)
        began = time.perf_counter()
        for _ in range(tasks):
            grant = floor.claim()
            assert grant is not None
            floor.complete(grant)
        return tasks / (time.perf_counter() - began)

    return run


def relet_side(db: relet.Client, tasks: int) -> Side:
    """The same loop through the client."""

    def run() -> float:
        db.submit_many(QUEUE, [{"topic": "grain"}] * tasks)
        began = time.perf_counter()
        for _ in range(tasks):
            lease = db.claim(QUEUE, holder="A", ttl=60)
            assert lease is not None
            lease.complete({"ok": True})
        return tasks / (time.perf_counter() - began)

    return run
