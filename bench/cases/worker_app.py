"""The worker process of B3: works until nothing is left, and says when it began and ended, and how many it did."""

from __future__ import annotations

import json
import sys
import time

import relet
from bench.floors import QUEUE

app = relet.App()


@app.task(QUEUE)
async def nothing(run: relet.AsyncRun, topic: str) -> dict[str, bool]:
    """Do nothing."""
    return {"ok": True}


def main(place: str, slots: str) -> None:
    """Work off what is there."""
    with relet.connect(f"sqlite:///{place}") as db:
        began = time.monotonic()
        done = app.run_until_idle(db, concurrency=int(slots))
        last = time.monotonic()
    print(json.dumps([began, last, done]))


if __name__ == "__main__":
    main(*sys.argv[1:])
