"""B3: `relet worker` with async handlers that do nothing, 64 at a time, on a disk that must keep every commit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from bench.bars import Bar, Judge, Result
from bench.cases.claim_complete import floor_side
from bench.floors import QUEUE, Floor
from bench.measure import Ground, Side, in_turn

NAME = "B3"
BARS = (Bar("B3", "`relet worker`: async handlers, 64 slots", "tasks/s", Judge.RATIO, bar=6, goal=12),)
ROOT = Path(__file__).parents[2]
APP = "bench.cases.worker_app:app"
SLOTS = 64
INPUTS = {"topic": "grain"}


def measure(ground: Ground) -> list[Result]:
    """Against the bare loop that claims and completes each task in a commit of its own."""
    relet = relet_side(ground, ground.size(full=6_000, smoke=200)) if ground.with_relet else None
    floor = floor_side(Floor(ground.folder / "b3-floor.db"), ground.size(full=1_500, smoke=50))
    pair = in_turn(ground, floor, relet, rounds=5)
    return [Result(BARS[0], pair.floor, pair.relet, pair.fsync_us, pair.steady)]


def relet_side(ground: Ground, tasks: int, bar: str = NAME) -> Side:
    """A whole worker process until nothing is left; from its first claim to its last commit."""
    import relet

    db = relet.connect(f"sqlite:///{ground.folder / f'{bar}-relet.db'}")

    def run() -> float:
        fill(db, tasks)
        began, ended, done = json.loads(worked(db.place))
        assert done == tasks
        return done / (ended - began)

    return run


def fill(db, tasks: int) -> None:
    """Put in tasks, in transactions of a hundred."""
    for _ in range(tasks // 100):
        db.submit_many(QUEUE, [INPUTS] * 100)


def worked(place: str) -> bytes:
    """What the worker process said of its run."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.check_output([sys.executable, "-m", "bench.cases.worker_app", place, str(SLOTS)], env=env)
