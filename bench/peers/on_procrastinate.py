"""Procrastinate with sixteen tasks at once and a pool to match, the rest at its defaults."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time

from procrastinate import App, PsycopgConnector

AT_ONCE = 16
DEFER_AT_ONCE = 1_000


async def work(url: str, tasks: int) -> list[float]:
    """Put in the jobs, work them off, and say when that began and ended."""
    app = App(connector=PsycopgConnector(conninfo=url, min_size=AT_ONCE, max_size=AT_ONCE))
    done = 0

    @app.task(name="nothing")
    async def nothing(topic: str) -> dict[str, bool]:
        nonlocal done
        done += 1
        return {"ok": True}

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for first in range(0, tasks, DEFER_AT_ONCE):
            await nothing.batch_defer_async(*[{"topic": "grain"}] * min(DEFER_AT_ONCE, tasks - first))
        began = time.monotonic()
        await app.run_worker_async(wait=False, concurrency=AT_ONCE, install_signal_handlers=False)
        ended = time.monotonic()
    return [began, ended, done]


if __name__ == "__main__":
    logging.disable()
    print(json.dumps(asyncio.run(work(sys.argv[1], int(sys.argv[2])))))
