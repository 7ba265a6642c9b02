"""B12: renewals over HTTP, each a request of its own, beside a bare service; and many of them in one request."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE
from bench.floors_http import LEASES
from bench.load_http import Load, request_of
from bench.measure import Ground, Side, in_turn

if TYPE_CHECKING:
    import relet

NAME = "B12"
CROWDS = (16, 64)
RATES = {
    n: Bar("B12", f"HTTP renewals, {n} connections", "answers/s", Judge.RATIO, bar=0.5, goal=0.8) for n in CROWDS
}
TAILS = {
    n: Bar("B12", "the same: 99 of 100 are answered in", "ms", Judge.RATIO, bar=3, goal=1.5, digits=1) for n in CROWDS
}
MANY = Bar(
    "B12", "1,000 leases renewed in one request: half of them within", "ms", Judge.VALUE, bar=20, goal=10, digits=1
)
HELD = Bar(
    "B12", "2,000 leases held over HTTP, ttl 60 s: a core of the service", "%", Judge.VALUE, bar=3, goal=1, digits=2
)
BARS = (*RATES.values(), *TAILS.values(), MANY, HELD)
ROOT = Path(__file__).parents[2]
NUMBERS = count()
BEATS = 20
BEAT_EVERY_S = 20
"""A third of the ttl; the beats are sent one after the other, and reckoned as if each had waited for that."""


def measure(ground: Ground) -> list[Result]:
    """Both sides are processes of their own, and so is the crowd."""
    results = []
    for n in CROWDS:
        seconds = ground.size(full=3, smoke=1) / (1 if not ground.smoke else 5)
        tails: dict[str, list[float]] = {"floor": [], "relet": []}
        ours = relet_side(ground, n, seconds, tails["relet"]) if ground.with_relet else None
        pair = in_turn(ground, floor_side(ground, n, seconds, tails["floor"]), ours, rounds=5)
        results.append(Result(RATES[n], pair.floor, pair.relet, pair.fsync_us, pair.steady))
        tail = statistics.median(tails["relet"]) if tails["relet"] else None
        results.append(Result(TAILS[n], statistics.median(tails["floor"]), tail, pair.fsync_us, pair.steady))
    if ground.with_relet:
        results += many_in_one(ground)
    return results


def floor_side(ground: Ground, n: int, seconds: float, tails: list[float]) -> Side:
    """The bare service over a file of its own, for each round."""

    def run() -> float:
        path = ground.folder / f"b12-floor-{next(NUMBERS)}.db"
        with serving([sys.executable, "-m", "bench.floors_http", str(path)]) as (process, _):
            assert process.stdout is not None
            port = int(process.stdout.readline())
            load = asked(port, [request_of("/renew", {"token": 1 + k % LEASES}) for k in range(n)], seconds)
        tails.append(load.tail_ms)
        return load.rate

    return run


def relet_side(ground: Ground, n: int, seconds: float, tails: list[float]) -> Side:
    """`relet serve` over a file of its own, for each round; each connection renews a lease of its own."""

    def run() -> float:
        with served(ground) as (db, port, key, _):
            db.submit_many(QUEUE, [None] * n)
            leases = db.claim_many(QUEUE, n, ttl=600)
            requests = [request_of("/v1/renew", {"handles": [handle_of(lease)]}, key) for lease in leases]
            load = asked(port, requests, seconds)
        tails.append(load.tail_ms)
        return load.rate

    return run


def many_in_one(ground: Ground) -> list[Result]:
    """A thousand leases in each request, and two thousand as a keeper of theirs would renew them."""
    with served(ground) as (db, port, key, process):
        n = ground.size(full=1_000, smoke=10)
        db.submit_many(QUEUE, [None] * 2 * n)
        leases = [handle_of(lease) for _ in range(2) for lease in db.claim_many(QUEUE, n, ttl=600)]
        one = [request_of("/v1/renew", {"handles": leases[:n]}, key)]
        load = asked(port, one, ground.size(full=3, smoke=1) / (1 if not ground.smoke else 5))
        all_of_them = request_of("/v1/renew", {"handles": leases}, key)
        before = cpu_s(process.pid)
        beats = ground.size(full=BEATS, smoke=2)
        for _ in range(beats):
            asked(port, [all_of_them], 0.0)
        core = 100 * (cpu_s(process.pid) - before) / (beats * BEAT_EVERY_S)
    return [Result(MANY, 0.0, load.middle_ms, 0.0), Result(HELD, 0.0, core, 0.0)]


def handle_of(lease: relet.Lease) -> dict[str, object]:
    """As it goes over the wire."""
    handle = lease.belief.grant.handle
    return {"task_id": handle.task_id, "token": handle.token, "secret": handle.secret}


@contextmanager
def served(ground: Ground) -> Iterator[tuple[relet.Client, int, str, subprocess.Popen[str]]]:
    """A client beside the store, the port of a service over it, a key, and the process."""
    import relet

    url = f"sqlite:///{ground.folder / f'b12-relet-{next(NUMBERS)}.db'}"
    command = [sys.executable, "-m", "relet"]
    made = [*command, "token", "create", "bench", "--role", "worker", "--url", url]
    key = subprocess.run(made, check=True, capture_output=True, text=True).stdout.strip()
    serve = [*command, "serve", "--url", url, "--listen", "127.0.0.1:0"]
    with relet.connect(url) as db, serving(serve) as (process, said):
        yield db, int(said.rpartition(":")[2]), key, process


@contextmanager
def serving(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process, and the first line of what it says on stderr, unless it speaks on stdout."""
    speaks = "relet" in command
    process = subprocess.Popen(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE if speaks else None,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        said = ""
        if speaks:
            assert process.stderr is not None
            said = process.stderr.readline().strip()
        yield process, said
    finally:
        process.terminate()
        process.communicate()


def asked(port: int, requests: Sequence[bytes], seconds: float) -> Load:
    """What a crowd is told by the service at a port."""
    given = {"port": port, "seconds": seconds, "requests": [request.decode() for request in requests]}
    command = [sys.executable, "-m", "bench.load_http"]
    told = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=True, cwd=ROOT)
    return Load(*json.loads(told.stdout))


def cpu_s(pid: int) -> float:
    """What a process has used of a processor, with all of its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
