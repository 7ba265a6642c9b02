"""Why a claim must judge and write in one transaction: the read-then-write race, in real processes.

Several processes are let go at the same moment and empty one small queue. First each *reads* which task is
free and then *writes* its name on it, as two statements. Then the same with one short transaction around
both. Nothing but the standard library is used. The exit code is 0 only if the first way gave some task to
two processes and the second never did.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

PROCESSES = 4
TASKS = 20
ROUNDS = 5
LOOK = 0.001  # seconds for which a process looks at what it has read, as every program does that decides by it
PATIENCE = 30  # seconds for which a process waits for the others, or for SQLite's lock

Claim = Callable[[sqlite3.Connection, int], int | None]

FREE = "SELECT id FROM task WHERE state = 'ready' ORDER BY id LIMIT 1"
TAKE = "UPDATE task SET state = 'leased', holder = ? WHERE id = ?"


def claim_naively(db: sqlite3.Connection, holder: int) -> int | None:
    """Read, then write. Between the two statements another process may have read the same row."""
    row = db.execute(FREE).fetchone()
    if row is None:
        return None
    time.sleep(LOOK)
    db.execute(TAKE, (holder, row[0]))
    return int(row[0])


def claim_atomically(db: sqlite3.Connection, holder: int) -> int | None:
    """The same two statements under the write lock: whoever reads next, reads what was written."""
    db.execute("BEGIN IMMEDIATE")
    try:
        return claim_naively(db, holder)
    finally:
        db.execute("COMMIT")


def empty_the_queue(path: str, holder: int, claim: Claim, start: Barrier) -> list[int]:
    """What one process does: wait for the others, then claim until nothing is left."""
    db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    start.wait(PATIENCE)
    mine = []
    while (task := claim(db, holder)) is not None:
        mine.append(task)
    db.close()
    return mine


def new_queue(path: str) -> None:
    """One file with TASKS free tasks in it."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE task (id INTEGER PRIMARY KEY, state TEXT NOT NULL, holder INTEGER)")
    db.executemany("INSERT INTO task VALUES (?, 'ready', NULL)", [(task,) for task in range(TASKS)])
    db.close()


def work(holder: int, paths: list[str], claim: Claim, start: Barrier, answers: Queue[list[list[int]]]) -> None:
    """One process: the same holder through all rounds."""
    answers.put([empty_the_queue(path, holder, claim, start) for path in paths])


def doubled(name: str, claim: Claim) -> int:
    """Let all processes claim in this way, tell what happened, and return how many tasks had two holders."""
    began = time.monotonic()
    spawn = multiprocessing.get_context("spawn")
    start, answers = spawn.Barrier(PROCESSES), spawn.Queue()
    with tempfile.TemporaryDirectory(prefix="naive-race-") as folder:
        paths = [str(Path(folder, f"round-{number}.db")) for number in range(ROUNDS)]
        for path in paths:
            new_queue(path)
        worker = partial(spawn.Process, target=work, daemon=True)
        processes = [worker(args=(holder, paths, claim, start, answers)) for holder in range(PROCESSES)]
        for process in processes:
            process.start()
        by_process = [answers.get(timeout=PATIENCE) for _ in processes]
        for process in processes:
            process.join()
    twice = lost = 0
    for claims in zip(*by_process, strict=True):
        holders = Counter(task for mine in claims for task in mine)
        twice += sum(1 for count in holders.values() if count > 1)
        lost += TASKS - len(holders)
    print(
        f"{name}: {twice} of {ROUNDS * TASKS} tasks were claimed by two or more of {PROCESSES} processes, "
        f"{lost} by none ({time.monotonic() - began:.1f} s)"
    )
    return twice


def main() -> int:
    """Run both ways and judge them."""
    naive = doubled("read, then write  ", claim_naively)
    atomic = doubled("one transaction   ", claim_atomically)
    if naive and not atomic:
        print("Judging and writing belong in one short transaction.")
        return 0
    print("This run did not show it: the naive way has to double at least once, the atomic one never.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
