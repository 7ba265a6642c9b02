"""A worker of the soak: worker.py URL LEDGER NAME. It is killed and stopped at any moment."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import relet
from tests.soak.ledger import Ledger

URL, LEDGER, NAME = sys.argv[1:]
TTL = "2s"
WITHOUT_END = relet.RetryPolicy(max_attempts=1_000, max_losses=1_000, base="100ms", cap="2s")
CONCURRENCY = 4
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


with relet.connect(URL, holder=NAME) as db, app.worker(db, concurrency=CONCURRENCY, signals=True) as worker:
    worker.wait()
