"""One process of the demonstration: claims a task, reads pages, saves after each, hands in what it read.

Run as `python -m relet.cli.demonstration.actor URL QUEUE HOLDER TTL PACE`; says what happens as JSON lines.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.connect import connect
from relet.core.errors import LeaseLost

PATIENCE_S = 15
POLL_S = 0.02


def say(event: str, **facts: Any) -> None:
    """One line for the narrator."""
    sys.stdout.write(json.dumps({"event": event, "at": time.monotonic(), **facts}) + "\n")
    sys.stdout.flush()


def act(db: Client, queue: str, holder: str, ttl: float, pace: float) -> None:
    """Claim and work until the queue has nothing more, or the narrator ends this process."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        lease = db.claim(queue, holder=holder, ttl=ttl)
        if lease is None:
            say("nothing")
            time.sleep(POLL_S)
            continue
        took_over = None if lease.took_over is None else lease.took_over.holder
        say("claimed", task=lease.task_id, token=lease.token, attempt=lease.attempt, took_over=took_over)
        try:
            with lease:
                read(lease, pace)
        except LeaseLost as lost:
            say("refused", task=lease.task_id, token=lease.token, reason=str(lost.reason))
            insist(lease)


def read(lease: Lease, pace: float) -> None:
    """Go on from the last page that any holder saved."""
    kept = lease.load() or {"page": 0, "read": []}
    say("resumed", page=kept["page"])
    while kept["page"] < lease.input["pages"]:
        time.sleep(pace)
        page = kept["page"] + 1
        kept = {"page": page, "read": [*kept["read"], f"page {page} by {lease.holder}"]}
        lease.save(kept)
        say("saved", page=page, token=lease.token)
    lease.complete(kept["read"])
    # As after a reply that was lost on the way: the same again gets the same answer.
    lease.complete(kept["read"])
    say("completed", task=lease.task_id, token=lease.token)


def insist(lease: Lease) -> None:
    """What a program does that ignores its loss: hand in a result all the same."""
    try:
        lease.complete([f"a version of its own by {lease.holder}"])
    except LeaseLost as lost:
        say("result refused", task=lease.task_id, reason=str(lost.reason), current=lost.current_token)
    else:
        say("result accepted", task=lease.task_id)


def main() -> None:
    """Entry of the process."""
    url, queue, holder, ttl, pace = sys.argv[1:6]
    with connect(url) as db:
        act(db, queue, holder, float(ttl), float(pace))


if __name__ == "__main__":
    main()
