"""B10: one client on PostgreSQL takes a task and completes it, two durable commits each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE
from bench.measure import Ground, Side, in_turn
from bench.postgres_server import client_of, floor_of, is_missing, server

if TYPE_CHECKING:
    import relet
    from bench.floors_postgres import PostgresFloor

NAME = "B10"
BARS = (Bar("B10", "PostgreSQL: claim, then complete: one client", "tasks/s", Judge.RATIO, bar=0.55, goal=0.80),)


def measure(ground: Ground) -> list[Result]:
    """Against two bare statements on one connection, each a commit of its own."""
    if is_missing(NAME):
        return []
    tasks = ground.size(full=400, smoke=20)
    with server(ground) as started, floor_of(started) as floor, client_of(started, ground) as db:
        pair = in_turn(ground, floor_side(floor, tasks), db and relet_side(db, tasks), rounds=7)
    return [Result(BARS[0], pair.floor, pair.relet, pair.fsync_us, pair.steady)]


def floor_side(floor: PostgresFloor, tasks: int) -> Side:
    """The bare statements."""

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
    """The same through the client."""

    def run() -> float:
        db.submit_many(QUEUE, [{"topic": "grain"}] * tasks)
        began = time.perf_counter()
        for _ in range(tasks):
            lease = db.claim(QUEUE, holder="A", ttl=60)
            assert lease is not None
            lease.complete({"ok": True})
        return tasks / (time.perf_counter() - began)

    return run
