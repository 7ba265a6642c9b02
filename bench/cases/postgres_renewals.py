"""PG6: leases on PostgreSQL, renewed in one call, and what a million renewals leave behind in their table.

Renewals need not be durable, on either side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bench.bars import Bar, Judge, Result
from bench.cases.renew_many import claimed
from bench.measure import FsyncProbe, Ground, Side, in_turn
from bench.postgres_server import client_of, floor_of, is_missing, server

if TYPE_CHECKING:
    from tests.postgres import PostgresServer

NAME = "PG6"
BARS = (
    Bar("PG6", "PostgreSQL: renew 100 leases in one call", "leases/s", Judge.RATIO, bar=0.40, goal=0.70),
    Bar("PG6", "PostgreSQL: renew 10,000 leases in one call", "leases/s", Judge.RATIO, bar=0.40, goal=0.70),
    Bar("PG6", "a million renewals: growth of the heap of leases", "%", Judge.VALUE, bar=20, goal=5, digits=1),
)
TTL_S = 3_600
"""Longer than the bench: none lapses while the other side is measured."""

Renew = Callable[[], object]


def measure(ground: Ground) -> list[Result]:
    """Against one bare statement that renews them all and tells which were alive."""
    if is_missing(NAME):
        return []
    many, rounds = ground.size(full=10_000, smoke=200), ground.size(full=100, smoke=5)
    with server(ground) as started:
        rates = [
            rate_of(ground, started, bar, leases, calls=max(1, min(100, 3 * many // leases)))
            for bar, leases in zip(BARS, (100, many), strict=False)
        ]
        fsync_us = FsyncProbe(ground.folder).us()
        grown = growth_of(ground, started, many, rounds)
    return [*rates, Result(BARS[-1], *grown, fsync_us)]


def rate_of(ground: Ground, started: PostgresServer, bar: Bar, leases: int, calls: int) -> Result:
    """How many leases a second, over so many calls."""
    with floor_of(started, durable=False) as floor, client_of(started, ground) as db:
        tokens = floor.grant(leases, TTL_S * 1_000)
        held = db and claimed(db, leases, ttl=TTL_S)
        pair = in_turn(
            ground, side(lambda: floor.renew(tokens), leases, calls),
            held and side(lambda: all_alive(db.renew_many(held)), leases, calls), rounds=11, disk=False,
        )  # fmt: skip
    return Result(bar, pair.floor, pair.relet, pair.fsync_us, pair.steady)


def all_alive(answers: Sequence[object]) -> int:
    """How many were renewed; a refusal is none."""
    return sum(not isinstance(answer, Exception) for answer in answers)


def side(renew: Callable[[], int], leases: int, calls: int) -> Side:
    """The same leases again and again."""

    def run() -> float:
        began = time.perf_counter()
        alive = [renew() for _ in range(calls)]
        took = time.perf_counter() - began
        assert alive == [leases] * calls
        return leases * calls / took

    return run


def growth_of(ground: Ground, started: PostgresServer, leases: int, rounds: int) -> tuple[float, float | None]:
    """By how many percent each side's table grows when all its leases are renewed so many times."""
    with floor_of(started, durable=False) as floor:
        tokens = floor.grant(leases, TTL_S * 1_000)
        bare = grown_percent(floor.db, "lease", lambda: floor.renew(tokens), rounds)
    if not ground.with_relet:
        return bare, None
    import psycopg

    with client_of(started, ground) as db, psycopg.connect(db.backend.url, autocommit=True) as beside:
        held = claimed(db, leases, ttl=TTL_S)
        return bare, grown_percent(beside, "relet.leases", lambda: db.renew_many(held), rounds)


def grown_percent(connection, table: str, renew: Renew, rounds: int) -> float:
    """From the size that the grants gave it."""

    def size() -> int:
        return connection.execute("SELECT pg_relation_size(%s::text::regclass)", (table,)).fetchone()[0]

    before = size()
    for _ in range(rounds):
        renew()
    return (size() / before - 1) * 100
