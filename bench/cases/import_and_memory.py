"""B14: what `import relet` costs a program that starts, and what an idle worker keeps in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.bars import Bar, Judge, Result
from bench.measure import Ground, in_turn, process_ms, resident_mib

NAME = "B14"
BARS = (
    Bar("B14", "`import relet`, over `python -c pass`", "ms", Judge.EXTRA, bar=120, goal=60, digits=1),
    Bar("B14", "memory of an idle worker", "MiB", Judge.VALUE, bar=60, goal=40, digits=1),
)
ROOT = Path(__file__).parents[2]
WORKER = ["worker", "bench.cases.idle_app:app", "--concurrency", "1"]


def measure(ground: Ground) -> list[Result]:
    """Both halves. The floor of the second one is a Python that sleeps."""

    def bare() -> float:
        return process_ms([sys.executable, "-c", "pass"])

    def importing() -> float:
        # The package loads its parts when they are asked for: what a program pays is the client's modules too.
        return process_ms([sys.executable, "-c", "import relet; relet.Client"])

    if ground.with_relet:
        importing()  # the first run compiles
    pair = in_turn(ground, bare, importing if ground.with_relet else None, rounds=21, disk=False)
    seconds = 1.0 if ground.smoke else 4.0
    floor = memory_of([sys.executable, "-c", "import time; time.sleep(60)"], ground, seconds)
    command = [str(Path(sys.executable).with_name("relet")), *WORKER]
    worker = memory_of(command, ground, seconds) if ground.with_relet else None
    return [
        Result(BARS[0], pair.floor, pair.relet, pair.fsync_us),
        Result(BARS[1], floor, worker, pair.fsync_us),
    ]


def memory_of(command: Sequence[str], ground: Ground, seconds: float) -> float:
    """Start it, let it settle, look, and end it."""
    url = f"sqlite:///{ground.folder}/b14-relet.db"
    env = {**os.environ, "RELET_URL": url, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        time.sleep(seconds)
        if process.poll() is not None:
            assert process.stderr is not None
            raise RuntimeError(f"{command[0]} ended by itself: {process.stderr.read().decode()}")
        return resident_mib(process.pid)
    finally:
        process.terminate()
        process.communicate(timeout=20)
