"""A queue that is named and that nobody ever used is told, since it may be a slip; it is no error."""

from __future__ import annotations

import difflib

from relet.cli.session import Session
from relet.client.blocking import Client


def note_unused(session: Session, client: Client, queue: str) -> None:
    """Say beside the data that no task is or ever was in this queue, and which one may have been meant."""
    if client.stats(queue).queues:
        return
    near = difflib.get_close_matches(queue, [one.name for one in client.queues() if one.name != queue], 1)
    meant = f"; did you mean {near[0]}?" if near else ""
    session.talk(f"no task is or ever was in queue {queue} of {session.place}{meant} → relet stats")
