"""`relet stats`: how many tasks stand where."""

from __future__ import annotations

import click

from relet.cli.colour import Paint
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, table

FIGURES = (
    "ready", "delayed", "leased", "live", "at_risk", "lapsed", "waiting", "reconciling", "done", "failed",
    "cancelled", "takeovers",
)  # fmt: skip


@verb("stats", example="relet stats --queue reports")
@click.option("--queue", help="Only this queue's.")
def stats(session: Session, queue: str | None) -> None:
    """Count tasks by queue and state, takeovers, and refused writes.

    Of the leased ones `live` are held, `at_risk` are held and past their heartbeat, `lapsed` have expired and were
    not yet taken back. Of the waiting ones `reconciling` wait until somebody says what became of an effect.
    """
    figures = session.existing().stats(queue)
    if session.json:
        session.answer(figures)
    elif figures.queues:
        head = ["QUEUE", *(name.upper().replace("_", " ") for name in FIGURES)]
        rows = [[clean(row.queue), *(str(getattr(row, name)) for name in FIGURES)] for row in figures.queues]
        if len(rows) > 1:
            rows.append(["in all", *(str(getattr(figures.total, name)) for name in FIGURES)])
        session.data(table(head, rows, Paint(session.color)))
        if figures.rejections:
            counts = ", ".join(f"{n} {reason}" for reason, n in figures.rejections.items())
            session.data(f"refused writes: {counts}")
    if not figures.queues:
        session.empty("no tasks" if queue is None else f"no tasks of queue {clean(queue)}")
