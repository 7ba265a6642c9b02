"""Measure two sides in turn on a disk that has more than one speed."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FSYNC_PROBES = 25
FSYNC_CHANGE_MAX = 1.3
TRIES_PER_ROUND = 5
PAGE = os.urandom(4096)
SYNC = getattr(os, "fdatasync", os.fsync)

Side = Callable[[], float]
"""Prepares one round untimed, runs it, and returns its figure."""


@dataclass(frozen=True)
class Ground:
    """Where and how thoroughly to measure."""

    folder: Path
    quick_folder: Path
    smoke: bool = False
    with_relet: bool = True
    peers_python: Path | None = None
    """A Python that has the peers, whose dependencies are none of relet's."""
    deep: bool = False
    """Ten times as deep, too, which takes minutes and gigabytes."""

    def size(self, full: int, smoke: int) -> int:
        """How many of something: as many as tell something, or just enough to see it run."""
        return smoke if self.smoke else full


@dataclass(frozen=True)
class Pair:
    """The medians of both sides over all rounds."""

    floor: float
    relet: float | None
    fsync_us: float
    steady: bool


class FsyncProbe:
    """How long the disk under a folder takes to make one page durable, just now."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "fsync-probe"
        self.path.write_bytes(PAGE * FSYNC_PROBES)

    def us(self) -> float:
        """The median of a few writes; the first ones only wake the disk."""
        took = []
        file = os.open(self.path, os.O_WRONLY)
        try:
            for number in range(FSYNC_PROBES):
                os.pwrite(file, PAGE, number * len(PAGE))
                began = time.perf_counter()
                SYNC(file)
                took.append(time.perf_counter() - began)
        finally:
            os.close(file)
        return statistics.median(took[FSYNC_PROBES // 5 :]) * 1e6


def in_turn(
    ground: Ground, floor: Side, relet: Side | None, rounds: int, *, disk: bool = True, folder: Path | None = None
) -> Pair:
    """Run both sides in turn, each round the other one first; `disk` says whether fsync counts in them."""
    probe = FsyncProbe(folder or ground.folder)
    sides = [floor] if relet is None else [floor, relet]
    figures: list[list[float]] = [[] for _ in sides]
    seen: list[float] = []
    all_steady = True
    for number in range(1 if ground.smoke else rounds):
        order = list(range(len(sides)))[:: -1 if number % 2 else 1]
        once, readings, steady = _steady_round(
            probe, sides, order, tries=TRIES_PER_ROUND if disk and not ground.smoke else 1
        )
        for index, figure in once.items():
            figures[index].append(figure)
        seen += readings
        all_steady = all_steady and (steady or not disk or ground.smoke)
    medians = [statistics.median(values) for values in figures]
    return Pair(medians[0], None if relet is None else medians[1], statistics.median(seen), all_steady)


def _steady_round(
    probe: FsyncProbe, sides: Sequence[Side], order: Sequence[int], tries: int
) -> tuple[dict[int, float], list[float], bool]:
    """One figure of each side between fsync readings that agree; after the last try, whatever it gave."""
    for left in reversed(range(tries)):
        readings = [probe.us()]
        once = {}
        for index in order:
            once[index] = sides[index]()
            readings.append(probe.us())
        steady = max(readings) <= min(readings) * FSYNC_CHANGE_MAX
        if steady or not left:
            return once, readings, steady
    raise AssertionError("there is at least one try")


def p50_us(action: Callable[[], object], times: int, between: Callable[[], object] = lambda: None) -> float:
    """The median time of an action; `between` runs untimed after each."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        took.append(time.perf_counter() - began)
        between()
    return statistics.median(took) * 1e6


def process_ms(argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> float:
    """A whole process, from its start to its end; it has to succeed.

    Modules are kept compiled as for every user, also where the environment forbids it: else each run compiles.
    """
    kept = {name: value for name, value in (env or os.environ).items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    done = subprocess.run(argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=kept)
    took = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {done.stderr.decode()}")
    return took * 1e3


def resident_mib(process: int) -> float:
    """The memory in use by a process and its children."""
    proc = Path("/proc", str(process))
    if not proc.exists():
        kib = subprocess.check_output(["ps", "-o", "rss=", "-p", str(process)], text=True)
        return int(kib) / 1024
    (line,) = [text for text in (proc / "status").read_text().splitlines() if text.startswith("VmRSS:")]
    children = (proc / "task" / str(process) / "children").read_text().split()
    return int(line.split()[1]) / 1024 + sum(resident_mib(int(child)) for child in children)
