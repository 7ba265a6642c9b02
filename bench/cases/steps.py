"""S1 and S2: what a step costs beside a bare save, and how soon a task of a thousand steps is back where it was."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE
from bench.measure import Ground, Side, in_turn, p50_us

if TYPE_CHECKING:
    import relet

NAME = "S"
BARS = (
    Bar("S1", "a step beside a bare save, p50", "us", Judge.RATIO, bar=2.0, goal=1.3),
    Bar(
        "S2",
        "replay 990 kept steps of 1,000, beside reading their rows",
        "ms",
        Judge.VALUE,
        bar=500.0,
        goal=100.0,
        digits=1,
    ),
)
VALUE = {"topic": "grain", "pages": [1, 2, 3]}
KEPT_SHARE = 0.99
READ = "SELECT name, slot, fingerprint, value FROM steps ORDER BY name, slot"


def measure(ground: Ground) -> list[Result]:
    """Both sides of the first bar are relet's: a save is what the same program would do without steps."""
    if not ground.with_relet:
        return []
    import relet

    calls = ground.size(full=500, smoke=20)
    with relet.connect(f"sqlite:///{ground.folder / 'b8-steps.db'}") as db:
        db.submit(QUEUE)
        lease = db.claim(QUEUE, holder="A", ttl=3_600)
        assert lease is not None
        with lease.run() as run:
            pair = in_turn(ground, save_side(lease, calls), step_side(run, calls), rounds=7)
            lease.complete()
    step = Result(BARS[0], pair.floor, pair.relet, pair.fsync_us, pair.steady)
    path, steps = ground.folder / "b8-replay.db", ground.size(full=1_000, smoke=50)
    with relet.connect(f"sqlite:///{path}") as db:
        kept = keep(db, steps)
        pair = in_turn(ground, read_side(path, kept), replay_side(db, kept), rounds=7, disk=False)
    return [step, Result(BARS[1], pair.floor, pair.relet, pair.fsync_us, pair.steady)]


def work(_number: int) -> object:
    """What a step calls: nothing that takes time."""
    return VALUE


def save_side(lease: relet.Lease, calls: int) -> Side:
    """A checkpoint after each piece of work."""
    return lambda: p50_us(lambda: lease.save(work(0)), calls)


def step_side(run: relet.Run, calls: int) -> Side:
    """The same work, as steps that number themselves."""
    return lambda: p50_us(lambda: run.step("work", work, 0), calls)


def keep(db: relet.Client, steps: int) -> int:
    """A task that has come nearly to its end, and was given back."""
    db.submit(QUEUE)
    lease, kept = db.claim(QUEUE, holder="A", ttl=3_600), int(steps * KEPT_SHARE)
    assert lease is not None
    with lease.run() as run:
        for number in range(kept):
            run.step("work", work, number)
        lease.release()
    return kept


def read_side(path: Path, kept: int) -> Side:
    """The bare read of the rows, on a connection of its own."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)

    def run() -> float:
        began = time.perf_counter()
        found = connection.execute(READ).fetchall()
        took = time.perf_counter() - began
        assert len(found) == kept
        return took * 1e3

    return run


def replay_side(db: relet.Client, kept: int) -> Side:
    """A new holder, from the first line to where the last one was."""

    def run() -> float:
        lease = db.claim(QUEUE, holder="A", ttl=3_600)
        assert lease is not None
        with lease.run() as run:
            began = time.perf_counter()
            for number in range(kept):
                run.step("work", work, number)
            took = time.perf_counter() - began
            assert run.skipped.steps == kept
            lease.release()
        return took * 1e3

    return run
