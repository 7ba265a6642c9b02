"""PgQueuer, tuned: asyncpg, uvloop and batches of a thousand, the fastest of those tried; its tables stay durable."""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.models import Job

BATCH = 1_000


async def work(url: str, tasks: int) -> list[float]:
    """Put in the jobs, work them off, and say when that began and ended."""
    connection = await asyncpg.connect(url)
    pgq = PgQueuer.from_asyncpg_connection(connection)
    queries = pgq.qm.queries
    await queries.install()
    await queries.optimize_autovacuum()
    for first in range(0, tasks, BATCH):
        n = min(BATCH, tasks - first)
        await queries.enqueue(["nothing"] * n, [b'{"topic":"grain"}'] * n, [0] * n)
    done = 0

    @pgq.entrypoint("nothing")
    async def nothing(job: Job) -> None:
        nonlocal done
        done += 1
        # Not its mode for draining a queue: that one looks at pauses whether anything is left.
        if done == tasks:
            pgq.shutdown.set()

    began = time.monotonic()
    # Statistics are folded up in the background every 30 s; here that would meet some rounds and not others.
    await pgq.qm.run(batch_size=BATCH, log_aggregation_interval=timedelta(0))
    ended = time.monotonic()
    assert not await queries.queue_size(), "all of them are told to be done"
    await connection.close()
    return [began, ended, done]


if __name__ == "__main__":
    print(json.dumps(uvloop.run(work(sys.argv[1], int(sys.argv[2])))))
