"""`relet prune`: finished tasks leave."""

from __future__ import annotations

from typing import Any

import click

from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.unused import note_unused


@verb(
    "prune",
    example="""relet prune --older 90d --dry-run
relet prune --queue reports --retention 30d
relet prune --queue reports --retention none
relet prune""",
)
@click.option("--older", metavar="DURATION", help="Tasks that finished so long ago.  [default: as their queue says]")
@click.option("--queue", help="Only this queue's.")
@click.option(
    "--retention", metavar="DURATION", help="With --queue: keep its finished tasks so long; none: for ever."
)
@click.option("--dry-run", is_flag=True, help="Print which, and change nothing.")
def prune(session: Session, older: str | None, queue: str | None, retention: str | None, dry_run: bool) -> None:
    """Remove finished tasks that are old enough.

    In small transactions, beside whoever uses the store. An id that has left is refused from then on (RELET-GONE).
    What has an effect that is not settled stays, and so do receipts for 30 days at least. Workers remove by
    themselves what is past the retention of its queue. The bytes that only such tasks named go by a collection.
    """
    client = session.existing() if retention is None else session.client()
    if retention is not None:
        from relet.core.border import invalid

        if queue is None or older is not None or dry_run:
            raise invalid("retention", "is a queue's: give --queue with it, without --older and --dry-run")
        row = client.queue(queue, retention=retention)
        session.answer({"queue": row.name, "retention_ms": row.retention_ms}) if session.json else session.data("set")
        note_unused(session, client, queue)
        return
    if queue is not None:
        note_unused(session, client, queue)
    bulk = client.prune(older, dry_run, queue=queue)
    told: dict[str, Any] = {"ids": bulk.ids, "count": bulk.count, "dry_run": dry_run}
    if session.json:
        session.answer(told)
    else:
        for one in bulk.ids:
            session.data(one)
    if not bulk.ids:
        session.empty("nothing to prune")
    elif dry_run:
        session.talk(f"would prune {bulk.count}; nothing was changed")
