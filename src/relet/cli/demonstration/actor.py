"""A process that reads pages: saves after each, hands in what it read, and goes on where another stopped.

Run as `python -m relet.cli.demonstration.actor URL SCHEMA QUEUE HOLDER TTL PACE`.
"""

from __future__ import annotations

import sys
import time

from relet.cli.demonstration.stage import act, say
from relet.client.blocking_lease import Lease
from relet.core.errors import LeaseLost


def work(lease: Lease, pace: float) -> None:
    """Read under the lease; when it is lost, say so, and try to hand something in all the same."""
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
    url, schema, queue, holder, ttl, pace = sys.argv[1:7]
    act(url, schema, queue, holder, float(ttl), lambda lease: work(lease, float(pace)))


if __name__ == "__main__":
    main()
