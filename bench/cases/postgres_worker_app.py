"""The worker process of B11: the application of B3 on PostgreSQL; says when it began and ended, how many it did."""

from __future__ import annotations

import json
import sys
import time

import relet
from bench.cases.worker_app import app


def main(url: str, slots: str) -> None:
    """Work off what is there."""
    with relet.connect(url) as db:
        began = time.monotonic()
        done = app.run_until_idle(db, concurrency=int(slots))
        ended = time.monotonic()
    print(json.dumps([began, ended, done]))


if __name__ == "__main__":
    main(*sys.argv[1:])
