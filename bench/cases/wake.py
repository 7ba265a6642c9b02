"""B8: from submit to start on an idle worker in another process, and what a worker takes that has nothing to do."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.bars import Bar, Judge, Result
from bench.measure import FsyncProbe, Ground

NAME = "B8"
BARS = (
    Bar("B8", "submit to start, idle worker in another process, p50", "ms", Judge.VALUE, bar=6, goal=3, digits=2),
    Bar("B8", "the same, p99", "ms", Judge.VALUE, bar=15, goal=6, digits=2),
    Bar("B8", "an idle worker, share of a core", "%", Judge.VALUE, bar=2, goal=1, digits=2),
)
ROOT = Path(__file__).parents[2]
QUEUE = "wake"
GAP_S = 0.02
"""Between two tasks, and as much again by chance: the worker is idle, and in no step with whoever submits."""
FLOOR = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


def measure(ground: Ground) -> list[Result]:
    """The floor is a process that is told through a pipe, and one that sleeps."""
    probe = FsyncProbe(ground.folder)
    tasks = ground.size(full=400, smoke=10)
    floor = pipe_ms(tasks)
    relet = wake_ms(ground, tasks) if ground.with_relet else None
    fsync_us = probe.us()
    seconds = ground.size(full=10, smoke=1)
    sleeping = share_of([sys.executable, "-c", "import time; time.sleep(3600)"], {}, seconds)
    idle = idle_share(ground, seconds) if ground.with_relet else None
    return [
        Result(BARS[0], statistics.median(floor), relet and statistics.median(relet), fsync_us),
        Result(BARS[1], p99(floor), relet and p99(relet), fsync_us),
        Result(BARS[2], sleeping, idle, fsync_us),
    ]


def p99(values: list[float]) -> float:
    """What one in a hundred takes, or longer."""
    return sorted(values)[int(len(values) * 0.99)]


def pause(number: int) -> None:
    """Until the other side has nothing to do for certain; the same pauses in each run."""
    time.sleep(GAP_S * (1 + number * 0.618 % 1))


def pipe_ms(times: int) -> list[float]:
    """To another process and back through pipes: two wake-ups and no store."""
    with subprocess.Popen([sys.executable, "-c", FLOOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        took = []
        for number in range(times):
            pause(number)
            began = time.perf_counter()
            process.stdin.write(b"go\n")
            process.stdin.flush()
            process.stdout.readline()
            took.append((time.perf_counter() - began) * 1e3)
        process.stdin.close()
    return took


def wake_ms(ground: Ground, tasks: int) -> list[float]:
    """From the call of submit to the first line of the handler, by the one monotonic clock of the machine."""
    import relet

    url = f"sqlite:///{ground.folder / 'b8-wake.db'}"
    took = []
    with relet.connect(url) as db, worker(url):
        db.result(db.submit(QUEUE, 0).id, wait=20)
        for number in range(tasks):
            pause(number)
            began = time.monotonic()
            task = db.submit(QUEUE, number)
            took.append((db.result(task.id, wait=20) - began) * 1e3)
    return took


def idle_share(ground: Ground, seconds: float) -> float:
    """Of a worker on a store with some history, where nobody does anything."""
    import relet

    url = f"sqlite:///{ground.folder / 'b8-idle.db'}"
    with relet.connect(url) as db, worker(url) as process:
        db.result(db.submit(QUEUE, 0).id, wait=20)
        time.sleep(1)
        return cpu_share(process.pid, seconds)


@contextmanager
def worker(url: str) -> Iterator[subprocess.Popen[bytes]]:
    """`relet worker`, as it is started from a shell."""
    env = {
        **os.environ,
        "RELET_URL": url,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "relet", "worker", "bench.cases.wake_app:app", "--concurrency", "4"]
    process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def share_of(command: list[str], env: dict[str, str], seconds: float) -> float:
    """Of a process of its own."""
    process = subprocess.Popen(command, env={**os.environ, **env})
    try:
        time.sleep(1)
        return cpu_share(process.pid, seconds)
    finally:
        process.kill()
        process.wait()


def cpu_share(process: int, seconds: float) -> float:
    """Of one core, in percent."""
    before = cpu_s(process)
    time.sleep(seconds)
    return (cpu_s(process) - before) / seconds * 100


def cpu_s(process: int) -> float:
    """What a process has used so far."""
    proc = Path("/proc", str(process))
    if not proc.exists():
        told = subprocess.check_output(["ps", "-o", "time=", "-p", str(process)], text=True)
        minutes, _, seconds = told.strip().rpartition(":")
        return sum(60 ** (n + 1) * int(part) for n, part in enumerate(reversed(minutes.split(":")))) + float(seconds)
    # In nanoseconds; `stat` counts in ticks of ten milliseconds, which an idle worker hardly fills.
    per_thread = [int((task / "schedstat").read_text().split()[0]) for task in (proc / "task").iterdir()]
    return sum(per_thread) / 1e9
