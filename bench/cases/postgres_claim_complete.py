"""B10: one client on PostgreSQL takes a task and completes it, two durable commits each."""

from __future__ import annotations

from bench.bars import Bar, Judge, Result
from bench.cases.claim_complete import floor_side, relet_side
from bench.measure import Ground, in_turn
from bench.postgres_server import client_of, floor_of, is_missing, server

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
