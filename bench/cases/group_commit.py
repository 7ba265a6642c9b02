"""Group commit: sixty-four callers of one process, threads or awaiting, each a task claimed and completed durably."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from queue import SimpleQueue

from bench.bars import Bar, Judge, Result
from bench.floors import QUEUE, Floor, Grant
from bench.measure import Ground, Side, in_turn

NAME = "GC"
BARS = (
    Bar("GC", "64 threads share commits: claim, complete", "verbs/s", Judge.RATIO, bar=0.30, goal=0.50),
    Bar("GC", "64 async callers share commits: the same", "verbs/s", Judge.RATIO, bar=0.20, goal=0.40),
)
CALLERS = 64


def measure(ground: Ground) -> list[Result]:
    """Against bare verbs in groups; the awaiting floor needs no threads, and so is much faster."""
    tasks = ground.size(full=20, smoke=2)
    numbers = count()

    def path(side: str) -> Path:
        return ground.folder / f"gc-{side}-{next(numbers)}.db"

    results = []
    pairs = ((floor_threads, relet_threads), (floor_awaiting, relet_awaiting))
    for bar, (bare, ours) in zip(BARS, pairs, strict=True):
        relet = ours(path("relet"), tasks) if ground.with_relet else None
        pair = in_turn(ground, bare(path("floor"), tasks), relet, rounds=5)
        results.append(Result(bar, pair.floor, pair.relet, pair.fsync_us, pair.steady))
    return results


def in_threads(work: Callable[[], None], tasks: int) -> float:
    """Verbs a second of all callers, each on a thread of its own."""
    with ThreadPoolExecutor(CALLERS) as threads:
        began = time.perf_counter()
        for done in [threads.submit(work) for _ in range(CALLERS)]:
            done.result()
        return 2 * CALLERS * tasks / (time.perf_counter() - began)


def floor_threads(path: Path, tasks: int) -> Side:
    """Callers leave their verbs in a queue, and one thread does all that lie there in one commit."""
    floor = Floor(path)
    left: SimpleQueue[tuple[Grant | None, SimpleQueue[Grant | None]]] = SimpleQueue()

    def serve() -> None:
        while True:
            asked = [left.get()]
            while len(asked) < CALLERS and not left.empty():
                asked.append(left.get())
            answers = floor.together([verb for verb, _ in asked])
            for (_, answered), answer in zip(asked, answers, strict=True):
                answered.put(answer)

    def work() -> None:
        answered: SimpleQueue[Grant | None] = SimpleQueue()
        for _ in range(tasks):
            left.put((None, answered))
            left.put((answered.get(), answered))
            answered.get()

    def run() -> float:
        floor.fill(ready=CALLERS * tasks)
        return in_threads(work, tasks)

    threading.Thread(target=serve, daemon=True).start()
    return run


def relet_threads(path: Path, tasks: int) -> Side:
    """One client for all threads."""
    import relet

    db = relet.connect(f"sqlite:///{path}")

    def work() -> None:
        for _ in range(tasks):
            lease = db.claim(QUEUE, holder="A", ttl=60)
            assert lease is not None
            lease.complete({"ok": True})

    def run() -> float:
        db.submit_many(QUEUE, [{"topic": "grain"}] * (CALLERS * tasks))
        return in_threads(work, tasks)

    return run


def in_tasks(work: Callable[[], Awaitable[None]], tasks: int) -> float:
    """Verbs a second of all callers, each an awaiting task of one loop."""

    async def every() -> float:
        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(CALLERS)))
        return 2 * CALLERS * tasks / (time.perf_counter() - began)

    return asyncio.run(every())


def floor_awaiting(path: Path, tasks: int) -> Side:
    """Callers leave their verbs, and at its next turn the loop does all of them in one commit."""
    floor = Floor(path)
    left: list[tuple[Grant | None, asyncio.Future[Grant | None]]] = []

    def serve() -> None:
        asked, left[:] = list(left), []
        for (_, answered), answer in zip(asked, floor.together([verb for verb, _ in asked]), strict=True):
            answered.set_result(answer)

    async def ask(verb: Grant | None) -> Grant | None:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Grant | None] = loop.create_future()
        left.append((verb, answered))
        if len(left) == 1:
            loop.call_soon(serve)
        return await answered

    async def work() -> None:
        for _ in range(tasks):
            await ask(await ask(None))

    def run() -> float:
        floor.fill(ready=CALLERS * tasks)
        return in_tasks(work, tasks)

    return run


def relet_awaiting(path: Path, tasks: int) -> Side:
    """One awaiting client for all tasks of the loop."""
    import relet

    def run() -> float:
        with relet.connect(f"sqlite:///{path}") as db:
            db.submit_many(QUEUE, [{"topic": "grain"}] * (CALLERS * tasks))
            adb = relet.AsyncClient(db)

            async def work() -> None:
                for _ in range(tasks):
                    lease = await adb.claim(QUEUE, holder="A", ttl=60)
                    assert lease is not None
                    await lease.complete({"ok": True})

            return in_tasks(work, tasks)

    return run
