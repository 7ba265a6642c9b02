"""One of several processes on one file: completes tasks until its time is up, and says how long each verb took."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.floors import QUEUE, Floor

Cycle = Callable[[], None]
"""One task: claimed, completed; a verb each."""


def gated_floor(path: Path, took: list[float]) -> Cycle:
    """The bare loop, each transaction within the gate."""
    floor = Floor(path, made=True)
    gate = os.open(f"{path}-gate", os.O_CREAT | os.O_RDWR, 0o600)

    @contextmanager
    def verb() -> Iterator[None]:
        began = time.perf_counter()
        fcntl.flock(gate, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(gate, fcntl.LOCK_UN)
        took.append(time.perf_counter() - began)

    def cycle() -> None:
        with verb():
            grant = floor.claim()
        assert grant is not None
        with verb():
            floor.complete(grant)

    return cycle


def relet_client(path: Path, took: list[float]) -> Cycle:
    """The same through a client."""
    import relet

    db = relet.connect(f"sqlite:///{path}")

    def cycle() -> None:
        began = time.perf_counter()
        lease = db.claim(QUEUE, holder="A", ttl=60)
        between = time.perf_counter()
        assert lease is not None
        lease.complete({"ok": True})
        took.extend((between - began, time.perf_counter() - between))

    return cycle


def main(side: str, path: str, seconds: str) -> None:
    """Be ready, wait for the start, work for so long, report."""
    took: list[float] = []
    cycle = (gated_floor if side == "floor" else relet_client)(Path(path), took)
    print("ready", flush=True)
    sys.stdin.readline()
    took.clear()
    until = time.perf_counter() + float(seconds)
    while time.perf_counter() < until:
        cycle()
    json.dump(took, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
