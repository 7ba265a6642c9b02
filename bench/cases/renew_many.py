"""B6, its first half: renew ten thousand leases in one call. Renewals need not be durable, on either side."""

from __future__ import annotations

import time
from pathlib import Path

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE, Floor
from bench.measure import Ground, Side, in_turn

NAME = "B6"
BARS = (Bar("B6", "renew 10,000 leases in one call", "leases/s", Judge.RATIO, bar=0.40, goal=0.70),)
CLAIM_AT_ONCE = 1_000


def measure(ground: Ground) -> list[Result]:
    """Against one bare statement that renews them all and tells which were alive."""
    leases = ground.size(full=10_000, smoke=200)
    relet = relet_side(ground.folder / "b6-relet.db", leases) if ground.with_relet else None
    floor = floor_side(ground.folder / "b6-floor.db", leases)
    pair = in_turn(ground, floor, relet, rounds=11, disk=False)
    return [Result(BARS[0], pair.floor, pair.relet, pair.fsync_us, pair.steady)]


def floor_side(path: Path, leases: int) -> Side:
    """The bare statement."""
    floor = Floor(path, durable=False)
    tokens = floor.grant(leases)

    def run() -> float:
        began = time.perf_counter()
        alive = floor.renew(tokens)
        took = time.perf_counter() - began
        assert alive == leases
        return leases / took

    return run


def relet_side(path: Path, leases: int) -> Side:
    """The call that a keeper of many leases makes."""
    import relet

    db = relet.connect(f"sqlite:///{path}")
    db.submit_many(QUEUE, [{"topic": "grain"}] * leases)
    held: list[relet.Lease] = []
    while len(held) < leases:
        held += db.claim_many(QUEUE, min(CLAIM_AT_ONCE, leases - len(held)), holder="A", ttl=600)

    def run() -> float:
        began = time.perf_counter()
        answers = db.renew_many(held)
        took = time.perf_counter() - began
        assert not [answer for answer in answers if isinstance(answer, Exception)]
        return leases / took

    return run
