"""`python -m tests.soak --minutes 30 --rate 50`: 0 when all held, 1 with findings.

A finding is a task lost, done or charged twice; what `relet verify` finds in the end; memory that grew, and a log
that was too long (the rules: `judging.memory_grew`, `judging.log_grew`); a worker that ended by itself. With
`--route http` the workers are at a service, which is killed, as their connections are, and must not grow either.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.processes.whole import ask
from tests.soak import judging
from tests.soak.course import Course
from tests.soak.routes import ROUTES

HEADS = (
    "seconds", "submitted", "done", "open", "failures", "kills", "stops", "takeovers", "refused", "WAL MB",
    "memory MB",
)  # fmt: skip
SETTLE_S = 180.0


def main(arguments: list[str]) -> int:
    """Print a line every minute (or quarter), then the findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=50, help="tasks per second")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--route", choices=sorted(ROUTES), default="file", help="at the file, or by a service")
    parser.add_argument("--folder", type=Path, help="where the store is made; a fresh one of its own unless given")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="relet-soak-", dir=asked.folder) as folder:
        findings = soak(Path(folder), asked.minutes * 60, asked.rate, asked.seed, asked.route)
    for finding in dict.fromkeys(findings):
        say(f"FINDING {finding}")
    say(f"{len(set(findings))} findings; seed {asked.seed}")
    return 1 if findings else 0


def soak(folder: Path, seconds: float, rate: float, seed: int, route: str) -> list[str]:
    """One run; what did not hold."""
    course = Course(folder, rate, seed, seconds, route)
    findings: list[str] = []
    memory: list[float] = []
    begun = time.monotonic()
    say(" ".join(f"{head:>9}" for head in (*HEADS, *course.route.heads)))
    try:
        every_s = min(60.0, seconds / 4)
        for n in range(1, round(seconds / every_s) + 1):
            time.sleep(max(0.0, begun + n * every_s - time.monotonic()))
            findings += looked_at(course, begun)
            if n * every_s >= seconds * judging.WARM_SHARE:
                memory.append(course.resident_mb())
        if not course.settle(SETTLE_S):
            findings.append(f"{course.open_tasks()} tasks are open {SETTLE_S:.0f} s after the last was submitted")
        findings += looked_at(course, begun)
        findings += judging.memory_grew(memory)
        findings += judging.service_grew(course.route.watched, course.route.scene)
        findings += judging.in_the_end(course)
    finally:
        course.close()
    return findings + course.faults


def looked_at(course: Course, begun: float) -> list[str]:
    """Say a line of the table; what does not hold at this moment."""
    stats = course.db.stats()
    takeovers = sum(queue.takeovers for queue in stats.queues)
    ((failures,),) = ask(course.db, "SELECT coalesce(sum(failures), 0) FROM tasks")
    wal_mb = course.wal_mb()
    row = (
        f"{time.monotonic() - begun:.0f}", len(course.submitted), sum(queue.done for queue in stats.queues),
        course.open_tasks(), failures, course.counts["kills"], course.counts["stops"], takeovers,
        sum(stats.rejections.values()), f"{wal_mb:.1f}", f"{course.resident_mb():.1f}",
        *course.route.figures(),
    )  # fmt: skip
    say(" ".join(f"{value:>9}" for value in row))
    return list(judging.by_the_way(course, wal_mb))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
