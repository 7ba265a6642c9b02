"""B13: `relet renew` as a shell agent runs it: the handle in the environment, a whole process each time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE
from bench.measure import Ground, Side, in_turn, process_ms

NAME = "B13"
BARS = (
    Bar("B13", "`relet renew` from the shell, over `python -c pass`", "ms", Judge.EXTRA, bar=150, goal=60, digits=1),
)


def measure(ground: Ground) -> list[Result]:
    """The extra time over a Python that does nothing."""
    relet = relet_side(ground.folder / "b13-relet.db") if ground.with_relet else None
    pair = in_turn(ground, lambda: process_ms([sys.executable, "-c", "pass"]), relet, rounds=21, disk=False)
    return [Result(BARS[0], pair.floor, pair.relet, pair.fsync_us, pair.steady)]


def relet_side(path: Path) -> Side:
    """One renewal of one live lease."""
    import relet

    url = f"sqlite:///{path}"
    with relet.connect(url) as db:
        db.submit(QUEUE, {"topic": "grain"})
        lease = db.claim(QUEUE, holder="A", ttl=3_600)
        assert lease is not None
        env = {**os.environ, "RELET_URL": url, "RELET_HANDLE": lease.handle}
    command: list[str | Path] = [Path(sys.executable).with_name("relet"), "renew"]
    process_ms(command, env)  # the first run compiles
    return lambda: process_ms(command, env)
