"""B11: `relet worker` on PostgreSQL, async handlers that do nothing, beside bare batches and beside other queues."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.bars import Bar, Judge, Result
from bench.cases.peers import has
from bench.cases.worker import fill
from bench.measure import Ground, Side, in_turn
from bench.postgres_server import client_of, floor_of, is_missing, server

if TYPE_CHECKING:
    import relet
    from bench.floors_postgres import PostgresFloor
    from tests.postgres import PostgresServer

NAME = "B11"
SLOTS = 100
BARE = Bar(
    "B11", f"PostgreSQL: `relet worker`, {SLOTS} slots, beside bare batches of {SLOTS}", "tasks/s", Judge.RATIO,
    bar=0.30, goal=0.60,
)  # fmt: skip


class Peer(NamedTuple):
    """Another queue: its program, how many tasks, and how many of them `relet worker` runs at once beside it."""

    name: str
    tasks: int
    slots: int
    bar: Bar


PEERS = (
    Peer("pgqueuer", 20_000, 1_000, Bar(
        "B11", "`relet worker` beside pgqueuer, both tuned: 1,000 at once", "tasks/s", Judge.RATIO, bar=0.7, goal=1.2,
    )),
    Peer("procrastinate", 1_000, SLOTS, Bar(
        "B11", f"`relet worker`, {SLOTS} slots, beside procrastinate, 16 at once", "tasks/s", Judge.RATIO, bar=10,
        goal=20,
    )),
)  # fmt: skip
BARS = (BARE, *(peer.bar for peer in PEERS))
ROOT = Path(__file__).parents[2]


def measure(ground: Ground) -> list[Result]:
    """Against bare batches, claimed and completed in a statement each; then in turn with each peer there is."""
    if is_missing(NAME):
        return []
    results = []
    with server(ground) as started, client_of(started, ground) as db:
        relet = db and partial(relet_rate, db, ground.size(full=10_000, smoke=200), SLOTS)
        with floor_of(started, batch=SLOTS) as floor:
            pair = in_turn(ground, floor_side(floor, ground.size(full=20_000, smoke=200)), relet, rounds=5)
        results.append(Result(BARE, pair.floor, pair.relet, pair.fsync_us, pair.steady))
        for peer in PEERS:
            if ground.peers_python is None or not has(ground.peers_python, peer.name):
                print(f"B11: {peer.name} is left out; `make bench-peers` installs and measures it", file=sys.stderr)
                continue
            tasks = ground.size(full=peer.tasks, smoke=50)
            beside = relet_side(started, tasks, peer.slots) if ground.with_relet else None
            pair = in_turn(ground, peer_side(started, ground.peers_python, peer.name, tasks), beside, rounds=5)
            results.append(Result(peer.bar, pair.floor, pair.relet, pair.fsync_us, pair.steady))
    return results


def floor_side(floor: PostgresFloor, tasks: int) -> Side:
    """One connection: a batch is claimed in a commit, and completed in the next one."""

    def run() -> float:
        floor.fill(ready=tasks)
        done = 0
        began = time.perf_counter()
        while grants := floor.claim_many():
            floor.complete_many(grants)
            done += len(grants)
        took = time.perf_counter() - began
        assert done == tasks
        return tasks / took

    return run


def relet_rate(db: relet.Client, tasks: int, slots: int) -> float:
    """A whole worker process until nothing is left; from its first claim to its last commit."""
    fill(db, tasks)
    return rate([sys.executable, "-m", "bench.cases.postgres_worker_app", db.backend.url, str(slots)], tasks)


def relet_side(started: PostgresServer, tasks: int, slots: int) -> Side:
    """On a fresh database, as the peer's."""
    import relet

    def run() -> float:
        with started.database() as url, relet.connect(url) as db:
            return relet_rate(db, tasks, slots)

    return run


def peer_side(started: PostgresServer, python: Path, name: str, tasks: int) -> Side:
    """Its own program on a fresh database, from the start of its worker to its last task."""
    program = [python, ROOT / "bench" / "peers" / f"on_{name}.py"]

    def run() -> float:
        with started.database() as url:
            return rate([*program, url, str(tasks)], tasks)

    return run


def rate(command: list[str | Path], tasks: int) -> float:
    """Tasks a second, by what a program says of when it began and ended, and how many it did."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    told = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
    if told.returncode:
        raise RuntimeError(f"{command} ended with {told.returncode}: {told.stderr}")
    began, ended, done = json.loads(told.stdout.splitlines()[-1])
    assert done == tasks
    return done / (ended - began)
