"""B5: four processes contend for one file: how even their shares are, how long a verb waits, what all of them do."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE, Floor
from bench.measure import Ground, in_turn

NAME = "B5"
BARS = (
    Bar("B5", "4 processes, claim and complete: together", "verbs/s", Judge.RATIO, bar=0.70, goal=0.90),
    Bar("B5", "4 processes: Jain index of their shares", "", Judge.VALUE, bar=0.95, goal=0.99, digits=3),
    Bar("B5", "4 processes: p99 of a verb", "ms", Judge.VALUE, bar=10, goal=5, digits=1),
)
PROCESSES = 4
TASKS_A_SECOND = 6_000
"""More than any disk lets them do."""
ROOT = Path(__file__).parents[2]
NUMBERS = count()


class Contest:
    """One side: rounds of four processes, and what each round came to."""

    def __init__(self, side: str, folder: Path, seconds: float, fill: Callable[[Path, int], None]) -> None:
        self.side, self.folder, self.seconds, self.fill = side, folder, seconds, fill
        self.jain: list[float] = []
        self.p99_ms: list[float] = []

    def run(self) -> float:
        """Verbs a second of all of them."""
        path = self.folder / f"b5-{self.side}-{next(NUMBERS)}.db"
        self.fill(path, max(200, int(TASKS_A_SECOND * self.seconds)))
        command = [sys.executable, "-m", "bench.cases.contender", self.side, str(path), str(self.seconds)]
        contenders = [
            subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(PROCESSES)
        ]
        for one in contenders:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in contenders:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        took: list[list[float]] = [json.loads(one.communicate()[0]) for one in contenders]
        shares = [len(verbs) for verbs in took]
        every = sorted(second for verbs in took for second in verbs)
        self.jain.append(sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares)))
        self.p99_ms.append(every[int(len(every) * 0.99)] * 1e3)
        return sum(shares) / self.seconds


def measure(ground: Ground) -> list[Result]:
    """Against the bare loop whose processes take turns at a gate."""
    seconds = 0.2 if ground.smoke else 2.0
    floor = Contest("floor", ground.folder, seconds, fill_floor)
    relet = Contest("relet", ground.folder, seconds, fill_relet)
    pair = in_turn(ground, floor.run, relet.run if ground.with_relet else None, rounds=5)
    shown = ((floor.jain, relet.jain), (floor.p99_ms, relet.p99_ms))
    return [
        Result(BARS[0], pair.floor, pair.relet, pair.fsync_us, pair.steady),
        *(
            Result(
                bar, statistics.median(bare), statistics.median(ours) if ours else None, pair.fsync_us, pair.steady
            )
            for bar, (bare, ours) in zip(BARS[1:], shown, strict=True)
        ),
    ]


def fill_floor(path: Path, tasks: int) -> None:
    """A bare file with tasks in it."""
    floor = Floor(path)
    floor.fill(ready=tasks)
    floor.close()


def fill_relet(path: Path, tasks: int) -> None:
    """A store with tasks in it."""
    import relet

    with relet.connect(f"sqlite:///{path}") as db:
        for _ in range(0, tasks, 5_000):
            db.submit_many(QUEUE, [{"topic": "grain"}] * 5_000)
