"""How a process of the demonstration talks with the narrator: JSON lines out, and one line in when it may begin."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.connect import connect

PATIENCE_S = 15
POLL_S = 0.02


def say(event: str, **facts: Any) -> None:
    """One line for the narrator."""
    sys.stdout.write(json.dumps({"event": event, "at": time.monotonic(), **facts}) + "\n")
    sys.stdout.flush()


def act(url: str, schema: str, queue: str, holder: str, ttl: float, work: Callable[[Lease], None]) -> None:
    """Wait for the cue, then claim and work until the narrator ends this process, or nothing comes for long."""
    with connect(url, schema=schema) as db:
        db.tasks(limit=1)  # opens the store, which takes its time
        say("ready")
        if sys.stdin.readline():
            _claim(db, queue, holder, ttl, work)


def _claim(db: Client, queue: str, holder: str, ttl: float, work: Callable[[Lease], None]) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        lease = db.claim(queue, holder=holder, ttl=ttl)
        if lease is None:
            say("nothing")
            time.sleep(POLL_S)
            continue
        took_over = None if lease.took_over is None else lease.took_over.holder
        say("claimed", task=lease.task_id, token=lease.token, attempt=lease.attempt, took_over=took_over)
        work(lease)
