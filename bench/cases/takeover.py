"""B9: from the death, or the freezing, of a worker to the restart of its task by another one on the same machine."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from bench.bars import Bar, Judge, Result
from bench.cases.wake import worker
from bench.measure import FsyncProbe, Ground

if TYPE_CHECKING:
    import relet

NAME = "B9"
BARS = (
    Bar("B9", "kill -9 to restart by another worker, ttl 1 s", "s", Judge.VALUE, bar=0.1, goal=0.02, digits=3),
    Bar("B9", "SIGSTOP to restart by another worker, ttl 1 s", "s", Judge.VALUE, bar=1.3, goal=1.1, digits=3),
)
TTL_S = 1.0
QUEUE = "long"


def measure(ground: Ground) -> list[Result]:
    """The floor of both is the ttl: what it takes where nothing but silence tells of a death."""
    if not ground.with_relet:
        return []
    rounds = ground.size(full=9, smoke=1)
    fsync_us = FsyncProbe(ground.folder).us()
    killed = statistics.median(restart_s(ground, kill) for _ in range(rounds))
    frozen = statistics.median(restart_s(ground, freeze) for _ in range(rounds))
    return [Result(BARS[0], TTL_S, killed, fsync_us), Result(BARS[1], TTL_S, frozen, fsync_us)]


def kill(process: int) -> None:
    """It is gone, and with it whatever the system held for it."""
    os.kill(process, signal.SIGKILL)


def freeze(process: int) -> None:
    """It is there, and does nothing any more."""
    os.kill(process, signal.SIGSTOP)


def restart_s(ground: Ground, strike: Callable[[int], None]) -> float:
    """From the strike to the first line of the next attempt, both by the monotonic clock of the machine."""
    import relet

    url = f"sqlite:///{ground.folder / 'b9-takeover.db'}"
    with relet.connect(url) as db, worker(url) as one, worker(url) as other:
        task = db.submit(QUEUE, 0)
        holder = begun(db, task.id)
        (struck,) = (process.pid for process in (one, other) if f":{process.pid}:" in holder)
        time.sleep(TTL_S / 2)  # so that it has renewed, and the other one has nothing to do
        at = time.monotonic()
        strike(struck)
        began = db.result(task.id, wait=20)
        if strike is freeze:
            os.kill(struck, signal.SIGCONT)
    return began - at


def begun(db: relet.Client, task_id: str) -> str:
    """The holder of the first attempt, once it is within its handler."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if db.checkpoints(task_id):
            return str(db.task(task_id).holder)
        time.sleep(0.01)
    raise TimeoutError("no worker began the task")
