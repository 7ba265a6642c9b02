"""PG7: do verbs on PostgreSQL slow down when a million tasks wait and a million finished ones lie beside them?

On a server whose commits do not wait for the disk: the same fsync would be added to both times, and would hide a verb
that has become slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from bench.bars import Bar, Judge, Result
from bench.cases.renew_many import claimed
from bench.floors import QUEUE
from bench.measure import Ground, Side, in_turn, p50_us
from bench.postgres_server import client_of, floor_of, is_missing, server

if TYPE_CHECKING:
    import relet
    from tests.postgres import PostgresServer

NAME = "PG7"
BARS = (
    Bar("PG7", "PostgreSQL: claim p50 at 1e6 ready + 1e6 done, over at 1e3", "x", Judge.VALUE, 1.5, 1.1, digits=2),
    Bar("PG7", "renew 100 leases in one call, the same", "x", Judge.VALUE, 1.5, 1.1, digits=2),
    Bar("PG7", "the first page of all tasks, the same", "x", Judge.VALUE, 1.5, 1.1, digits=2),
)
SHALLOW = 1_000
LEASES = 100
TTL_S = 3_600

# Every table that has rows for each task, with the columns that a copy cannot share; None leaves one to its default.
# A copied grant gets a negative token, which no real one ever had.
COPIES = {
    "tasks": {
        "seq": "%(base)s + n",
        "id": "one.id || '-' || n",
        "token": "CASE one.token WHEN 0 THEN 0 ELSE -n END",
    },
    "inputs": {"task_seq": "%(base)s + n"},
    "leases": {"token": "-n", "task_seq": "%(base)s + n", "request_id": "NULL"},
    "events": {
        "seq": None,
        "task_seq": "%(base)s + n",
        "token": "CASE WHEN one.token IS NULL THEN NULL ELSE -n END",
    },
}

Sides = tuple[Side, Side, Side]
"""The p50 of a claim, of a renewal and of a page."""
Filled = Callable[[Ground, "PostgresServer", int, int], AbstractContextManager[Sides]]
"""A new database with so many ready and done tasks in it."""


def measure(ground: Ground) -> list[Result]:
    """The growth of each verb's time, for the bare statements and for relet."""
    if is_missing(NAME):
        return []
    with server(ground, durable=False) as started:
        bare = growths(ground, started, bare_sides)
        ours = growths(ground, started, relet_sides) if ground.with_relet else [None] * len(bare)
    return [Result(*figures, fsync_us=0) for figures in zip(BARS, bare, ours, strict=True)]


def growths(ground: Ground, started: PostgresServer, filled: Filled) -> list[float]:
    """The times at depth over those at a thousand, taken in turn."""
    ready, done = ground.size(full=1_000_000, smoke=2_000), ground.size(full=1_000_000, smoke=2_000)
    grown = []
    with filled(ground, started, SHALLOW, 0) as shallow, filled(ground, started, ready, done) as deep:
        for few, many in zip(shallow, deep, strict=True):
            pair = in_turn(ground, few, many, rounds=15, disk=False)
            assert pair.relet is not None
            grown.append(pair.relet / pair.floor)
    return grown


@contextmanager
def bare_sides(ground: Ground, started: PostgresServer, ready: int, done: int) -> Iterator[Sides]:
    """The bare statements; each claim is completed untimed."""
    with floor_of(started) as floor:
        floor.fill(ready, done)
        settle(floor.db)
        tokens, held = floor.grant(LEASES, TTL_S * 1_000), []
        yield sides(
            ground, lambda: held.append(floor.claim()), lambda: floor.complete(held.pop()),
            lambda: floor.renew(tokens), floor.page,
        )  # fmt: skip


@contextmanager
def relet_sides(ground: Ground, started: PostgresServer, ready: int, done: int) -> Iterator[Sides]:
    """The same through the client."""
    import psycopg

    with client_of(started, ground) as db:
        with psycopg.connect(db.backend.url, autocommit=True) as beside:
            if done:
                copy(beside, finished(db), done)
            copy(beside, db.submit(QUEUE, {"topic": "grain"}).id, ready)
            settle(beside)
        leases, held = claimed(db, LEASES, ttl=TTL_S), []
        yield sides(
            ground, lambda: held.append(db.claim(QUEUE, holder="A", ttl=TTL_S)), lambda: held.pop().complete(),
            lambda: db.renew_many(leases), lambda: db.tasks(QUEUE),
        )  # fmt: skip


def sides(ground: Ground, claim, complete, renew, page) -> Sides:
    """The three medians."""
    times = ground.size(full=40, smoke=10)
    return (
        lambda: p50_us(claim, times, between=complete),
        lambda: p50_us(renew, times),
        lambda: p50_us(page, times),
    )


def finished(db: relet.Client) -> str:
    """The id of a task that was worked on."""
    task = db.submit(QUEUE, {"topic": "grain"})
    lease = db.claim(QUEUE, holder="A", ttl=TTL_S)
    assert lease is not None
    lease.complete({"ok": True})
    return task.id


def copy(connection, task_id: str, copies: int) -> None:
    """Multiply a task and all that belongs to it: a million real ones would take longer than all else here."""
    with connection.transaction():
        seq, base = connection.execute(
            "SELECT seq, (SELECT max(seq) FROM relet.tasks) FROM relet.tasks WHERE id = %s", (task_id,)
        ).fetchone()
        for table, changed in COPIES.items():
            described = connection.execute(f"SELECT * FROM relet.{table} LIMIT 0").description
            values = {column.name: changed.get(column.name, f"one.{column.name}") for column in described}
            given = {column: value for column, value in values.items() if value is not None}
            key = "seq" if table == "tasks" else "task_seq"
            connection.execute(
                f"INSERT INTO relet.{table} ({', '.join(given)}) SELECT {', '.join(given.values())} "
                f"FROM generate_series(1, %(copies)s) AS n CROSS JOIN relet.{table} AS one WHERE one.{key} = %(seq)s",
                {"copies": copies, "base": base, "seq": seq},
            )
        connection.execute("SELECT setval(pg_get_serial_sequence('relet.tasks', 'seq'), max(seq)) FROM relet.tasks")


def settle(connection) -> None:
    """Leave the tables as time would have left them."""
    connection.execute("VACUUM (ANALYZE)")
    connection.execute("CHECKPOINT")
