"""B7: does a claim slow down when a million tasks wait and a million finished ones lie beside them?

Measured in a folder in memory where there is one: on a disk the same fsync would be added to both times, and would
hide a claim that has become slow.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE, Floor, Grant
from bench.measure import Ground, Side, in_turn, p50_us

NAME = "B7"
BARS = (
    Bar("B7", "claim p50 at 1e6 ready + 1e6 done, over at 1e3", "x", Judge.VALUE, bar=1.5, goal=1.1, digits=2),
    Bar("B7", "the same at 1e7 ready + 1e6 done", "x", Judge.VALUE, bar=2, goal=1.3, digits=2),
)
MILLION = 1_000_000
SHALLOW = 1_000

# Every table that has rows for each task, with the columns that a copy cannot share. A copied grant gets a negative
# token, which no real one ever had.
COPIES = {
    "tasks": {
        "seq": ":base + n",
        "id": "one.id || '-' || n",
        "token": "CASE one.token WHEN 0 THEN 0 ELSE -n END",
    },
    "inputs": {"task_seq": ":base + n"},
    "leases": {"token": "-n", "task_seq": ":base + n", "request_id": "NULL"},
    "events": {
        "seq": "NULL",
        "task_seq": ":base + n",
        "token": "CASE WHEN one.token IS NULL THEN NULL ELSE -n END",
    },
}

Claims = Callable[[Path, int, int, int], Side]
"""Fills a new file with so many ready and done tasks; the side is the p50 of so many claims in it."""


def measure(ground: Ground) -> list[Result]:
    """The growth of a claim's time, for the bare loop and for relet."""
    results = []
    for bar, millions in zip(BARS, (1, 10) if ground.deep else (1,), strict=False):
        floor = growth(ground, "floor", floor_claims, millions)
        relet = growth(ground, "relet", relet_claims, millions) if ground.with_relet else None
        results.append(Result(bar, floor, relet, fsync_us=0))
    return results


def growth(ground: Ground, name: str, claims: Claims, millions: int) -> float:
    """The time at depth over the time at a thousand, taken in turn."""
    ready = ground.size(full=millions * MILLION, smoke=millions * 2_000)
    done = ground.size(full=MILLION, smoke=2_000)
    times = ground.size(full=40, smoke=10)
    shallow = claims(ground.quick_folder / f"b7-{name}-{millions}-shallow.db", SHALLOW, 0, times)
    deep = claims(ground.quick_folder / f"b7-{name}-{millions}-deep.db", ready, done, times)
    pair = in_turn(ground, shallow, deep, rounds=15, disk=False)
    assert pair.relet is not None
    return pair.relet / pair.floor


def floor_claims(path: Path, ready: int, done: int, times: int) -> Side:
    """Bare claims, each completed untimed."""
    floor = Floor(path)
    floor.fill(ready, done)
    empty_the_log(path)
    held: list[Grant] = []

    def claim() -> None:
        grant = floor.claim()
        assert grant is not None
        held.append(grant)

    return lambda: p50_us(claim, times, between=lambda: floor.complete(held.pop()))


def relet_claims(path: Path, ready: int, done: int, times: int) -> Side:
    """Claims through the client, each completed untimed."""
    import relet

    db = relet.connect(f"sqlite:///{path}")
    held: list[relet.Lease] = []

    def claim() -> None:
        lease = db.claim(QUEUE, holder="A", ttl=3_600)
        assert lease is not None
        held.append(lease)

    if done:
        db.submit(QUEUE, {"topic": "grain"})
        claim()
        finished = held.pop()
        finished.complete({"ok": True})
        copy(path, finished.task_id, done)
    copy(path, db.submit(QUEUE, {"topic": "grain"}).id, ready)
    empty_the_log(path)
    return lambda: p50_us(claim, times, between=lambda: held.pop().complete({"ok": True}))


def copy(path: Path, task_id: str, copies: int) -> None:
    """Multiply a task and all that belongs to it: a million real ones would take longer than all else here."""
    db = apsw.Connection(str(path))
    seq, base = db.execute("SELECT seq, (SELECT max(seq) FROM tasks) FROM tasks WHERE id = ?", (task_id,)).get
    with db:
        for table, changed in COPIES.items():
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            values = [changed.get(column, f"one.{column}") for column in columns]
            key = "seq" if table == "tasks" else "task_seq"
            db.execute(
                f"WITH RECURSIVE one AS MATERIALIZED (SELECT * FROM {table} WHERE {key} = :seq), "
                f"numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :copies) "
                f"INSERT INTO {table} ({', '.join(columns)}) "
                f"SELECT {', '.join(values)} FROM numbers CROSS JOIN one",
                {"copies": copies, "base": base, "seq": seq},
            )
    db.close()


def empty_the_log(path: Path) -> None:
    """Move what was filled in from the log into the file, as time would have done."""
    db = apsw.Connection(str(path))
    db.set_busy_timeout(10_000)
    db.pragma("wal_checkpoint(TRUNCATE)")
    db.close()
