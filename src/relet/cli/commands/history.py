"""`relet history`, `relet watch`: what happened, and what happens."""

from __future__ import annotations

from itertools import islice

import click

from relet.cli.colour import Paint
from relet.cli.events import told
from relet.cli.options import reveal_option, verb
from relet.cli.session import Session
from relet.cli.words import clean, when
from relet.core.model import Event


@verb("history", example="relet history r-1")
@click.argument("id")
@reveal_option()
def history(session: Session, id: str) -> None:
    """Print all that happened to a task, oldest first."""
    events = session.existing().history(id)
    if session.json:
        session.answer({"task_id": id, "events": events})
        return
    paint = Paint(session.color)
    for event in events:
        session.data(line(session.seen(event), paint, with_task=False))


@verb("watch", example="relet watch --queue reports --json")
@click.option("--queue", help="Only this queue's.")
@click.option("--task", "task_id", metavar="ID", help="Only of this task.")
@click.option("--after", metavar="SEQ", type=int, help="From after this change, 0 for the first.  [default: now]")
@click.option("--limit", type=click.IntRange(min=1), help="End after so many changes.  [default: never]")
@reveal_option()
def watch(
    session: Session, queue: str | None, task_id: str | None, after: int | None, limit: int | None
) -> None:  # fmt: skip
    """Print changes as they happen, one a line.

    Never ends by itself, unless --limit is given. With --json each line is an object, and the last `seq` of one run
    is what the next goes on from by --after.
    """
    client = session.client()
    changes = client.watch(queue, task_id, after)
    if after is None:
        session.talk(f"watching {session.place} from now on")
    paint = Paint(session.color)
    for event in islice(changes, limit):
        if session.json:
            session.answer(event)
        else:
            session.data(line(session.seen(event), paint, with_task=True))


def line(event: Event, paint: Paint, *, with_task: bool) -> str:
    """One change on one line."""
    parts = [when(event.at)]
    if with_task:
        parts += [clean(event.queue), clean(event.task_id)]
    parts.append(paint(f"{event.kind:<16}", None, bold=True))
    if event.token is not None:
        parts.append(f"{'' if event.holder is None else f'{clean(event.holder)} '}token {event.token}")
    parts.append(told(event))
    return "  ".join(parts).rstrip()
