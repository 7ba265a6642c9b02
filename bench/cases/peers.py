"""B4: the worker of B3 beside other durable queues on SQLite, tasks that do nothing, each as its makers set it up."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.bars import Bar, Judge, Result
from bench.cases.worker import relet_side
from bench.measure import Ground, Side, in_turn

NAME = "B4"
ROOT = Path(__file__).parents[2]
PEERS = {
    "huey": (2_000, Bar("B4", "`relet worker` beside huey at its defaults", "tasks/s", Judge.RATIO, bar=5, goal=10)),
    "dbos": (400, Bar("B4", "`relet worker` beside DBOS on SQLite", "tasks/s", Judge.RATIO, bar=40, goal=100)),
    "fleetwright": (
        1_000, Bar("B4", "`relet worker` beside fleetwright, unit by unit", "tasks/s", Judge.RATIO, bar=5, goal=10),
    ),
}  # fmt: skip
BARS = tuple(bar for _, bar in PEERS.values())


def measure(ground: Ground) -> list[Result]:
    """In turn with each of those that are installed where `--peers-python` says; none without it."""
    if ground.peers_python is None:
        print("B4: left out; `make bench-peers` installs the peers and measures", file=sys.stderr)
        return []
    relet = relet_side(ground, ground.size(full=6_000, smoke=200), NAME) if ground.with_relet else None
    results = []
    for name, (tasks, bar) in PEERS.items():
        if not has(ground.peers_python, name):
            print(f"B4: {name} is not installed for {ground.peers_python}; left out", file=sys.stderr)
            continue
        side = peer_side(ground, name, ground.size(full=tasks, smoke=20))
        pair = in_turn(ground, side, relet, rounds=5)
        results.append(Result(bar, pair.floor, pair.relet, pair.fsync_us, pair.steady))
    return results


def has(python: Path, package: str) -> bool:
    """Can it be imported there."""
    return subprocess.run([python, "-c", f"import {package}"], check=False, capture_output=True).returncode == 0


def peer_side(ground: Ground, name: str, tasks: int) -> Side:
    """Its own program in a fresh folder, from the start of its worker to its last task."""
    assert ground.peers_python is not None, "asked before"
    program = [ground.peers_python, ROOT / "bench" / "peers" / f"on_{name}.py"]

    def run() -> float:
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=ground.folder) as folder:
            told = subprocess.check_output([*program, folder, str(tasks)], stderr=subprocess.DEVNULL, text=True)
        began, ended, done = json.loads(told.splitlines()[-1])
        assert done == tasks
        return tasks / (ended - began)

    return run
