"""B6: ten thousand leases, renewed in one call, and kept by a process that does nothing else.

Renewals need not be durable, on either side.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE, Floor
from bench.measure import Ground, Side, in_turn

if TYPE_CHECKING:
    import relet

NAME = "B6"
BARS = (
    Bar("B6", "renew 10,000 leases in one call", "leases/s", Judge.RATIO, bar=0.40, goal=0.70),
    Bar("B6", "keep 10,000 leases at ttl 60 s, share of a core", "%", Judge.VALUE, bar=1, goal=0.3, digits=2),
)
CLAIM_AT_ONCE = 1_000
TTL_S = 60


def measure(ground: Ground) -> list[Result]:
    """Against one bare statement that renews them all and tells which were alive."""
    leases = ground.size(full=10_000, smoke=200)
    relet = relet_side(ground.folder / "b6-relet.db", leases) if ground.with_relet else None
    floor = floor_side(ground.folder / "b6-floor.db", leases)
    pair = in_turn(ground, floor, relet, rounds=11, disk=False)
    kept = kept_percent(ground, leases) if ground.with_relet else None
    return [
        Result(BARS[0], pair.floor, pair.relet, pair.fsync_us, pair.steady),
        Result(BARS[1], 0.0, kept, pair.fsync_us),
    ]


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
    held = claimed(db, leases, ttl=600)

    def run() -> float:
        began = time.perf_counter()
        answers = db.renew_many(held)
        took = time.perf_counter() - began
        assert not [answer for answer in answers if isinstance(answer, Exception)]
        return leases / took

    return run


def kept_percent(ground: Ground, leases: int) -> float:
    """What a whole process takes whose keeper renews them all, over as many beats as fit into two thirds of a ttl."""
    import relet

    seconds = ground.size(full=TTL_S * 2 // 3, smoke=1)
    with relet.connect(f"sqlite:///{ground.folder / 'b6-kept.db'}") as db, ExitStack() as blocks:
        for lease in claimed(db, leases, ttl=TTL_S):
            blocks.enter_context(lease.keep())
        began, used = time.monotonic(), time.process_time()
        time.sleep(seconds)
        return (time.process_time() - used) / (time.monotonic() - began) * 100


def claimed(db: relet.Client, leases: int, *, ttl: float) -> list[relet.Lease]:
    """So many leases, from a store that had no task before."""
    db.submit_many(QUEUE, [{"topic": "grain"}] * leases)
    held: list[relet.Lease] = []
    while len(held) < leases:
        held += db.claim_many(QUEUE, min(CLAIM_AT_ONCE, leases - len(held)), holder="A", ttl=ttl)
    return held
