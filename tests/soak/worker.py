"""A worker of the soak: worker.py URL LEDGER NAME TTL_S SLOTS. It is killed and stopped at any moment."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from pathlib import Path

import relet
from tests.soak.ledger import Ledger

URL, LEDGER, NAME, TTL_S, SLOTS = sys.argv[1:]
TTL = float(TTL_S)
WITHOUT_END = relet.RetryPolicy(max_attempts=1_000, max_losses=1_000, base="100ms", cap="2s")
PATIENCE_S = 60
ledger = Ledger(Path(LEDGER))
app = relet.App()


def charge(run: relet.Run) -> int:
    """An effect that may be repeated under its key, as after a kill in its middle."""
    return run.effect(
        "charge", {"task": run.task.id}, lambda payload, effect: ledger.charge(payload["task"], effect.key),
        contract=relet.Keyed(retention="24h"), timeout="30s",
    )  # fmt: skip


@app.task("steps", queue="soak", ttl=TTL, retry=WITHOUT_END)
def steps(run: relet.Run) -> int:
    for n in range(2):
        run.step("think", time.sleep, 0.01 * n)
    ledger.write(run.task.id, run.token)
    return run.token


@app.task("effect", queue="soak", ttl=TTL, retry=WITHOUT_END)
def effect(run: relet.Run) -> int:
    charge(run)
    ledger.write(run.task.id, run.token)
    return run.token


@app.task("asks", queue="soak", ttl=TTL, retry=WITHOUT_END)
def asks(run: relet.Run) -> int:
    charge(run)
    assert run.approval("publish", ask={"task": run.task.id}).accepted
    ledger.write(run.task.id, run.token)
    return run.token


@app.task("sleeps", queue="soak", ttl=TTL, retry=WITHOUT_END)
async def sleeps(run: relet.AsyncRun) -> int:
    await run.sleep("1s")
    await asyncio.sleep(0.1)
    await asyncio.to_thread(ledger.write, run.task.id, run.token)
    return run.token


@app.task("long", queue="soak", ttl=TTL, retry=WITHOUT_END)
def long(run: relet.Run) -> int:
    """More than a ttl of work, by way of checkpoints."""
    for n in range(run.load() or 0, 30):
        time.sleep(0.1)
        if n % 10 == 9:
            run.save(n + 1)
        run.check()
    ledger.write(run.task.id, run.token)
    return run.token


@app.task("holds", queue="soak", ttl=TTL, retry=WITHOUT_END)
async def holds(run: relet.AsyncRun) -> int:
    """Waits for others most of the time, as an agent does for its model; several ttls."""
    for n in range(await run.load() or 0, 10):
        await asyncio.sleep(random.uniform(0.5, 1.5))
        if n % 3 == 2:
            await run.save(n + 1)
    await asyncio.to_thread(ledger.write, run.task.id, run.token)
    return run.token


def connected() -> relet.Client:
    """As whoever starts workers does it, again and again while the service is away."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return relet.connect(URL, holder=NAME)
        except relet.Unavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


with connected() as db, app.worker(db, concurrency=int(SLOTS), signals=True) as worker:
    worker.wait()
