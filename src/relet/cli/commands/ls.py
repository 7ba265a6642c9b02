"""`relet ls`: the tasks of a store."""

from __future__ import annotations

from datetime import datetime

import click

from relet.cli.colour import Paint
from relet.cli.options import labels_option, state_option, verb
from relet.cli.session import Session
from relet.cli.words import clean, now_utc, quoted, since, state_word, table, until
from relet.core.model import State, Task

HEAD = ("ID", "QUEUE", "STATE", "HOLDER", "TOKEN", "EXPIRES IN", "ATTEMPT", "AGE")


@verb("ls", example="relet ls --queue reports --state leased")
@click.option("--queue", help="Only this queue's.")
@click.option("--kind", help="Only of this kind.")
@state_option("Only in this state.")
@labels_option("Only with this label.")
@click.option("--limit", type=int, default=100, help="At most so many, 1000 at the utmost.  [default: 100]")
@click.option("--after", metavar="ID", help="Go on after this task, the last one of the page before.")
def ls(
    session: Session, queue: str | None, kind: str | None, state: str | None, labels: dict[str, str] | None,
    limit: int, after: str | None,
) -> None:  # fmt: skip
    """List tasks in the order in which they were made.

    A lease that is past its heartbeat reads `at risk`, one that expired and was not yet taken back `lapsed`.
    """
    client = session.reader()
    tasks = client.tasks(queue, state, labels, kind=kind, limit=limit, after=after)
    following = tasks[-1].id if len(tasks) == limit else None
    if session.json:
        session.answer({"tasks": tasks, "next": following})
    elif tasks:
        now, paint = now_utc(), Paint(session.color)
        session.data(table(HEAD, [_row(task, now, paint) for task in tasks], paint))
    if not tasks:
        session.empty("no such task" if any((queue, kind, state, labels, after)) else "no tasks")
    elif following is not None:
        session.talk(f"there may be more → --after {quoted(following)}")


def _row(task: Task, now: datetime, paint: Paint) -> tuple[str, ...]:
    held = task.state is State.LEASED
    return (
        clean(task.id), clean(task.queue), state_word(task, now, paint), clean(task.holder) if held else "-",
        str(task.token) if held else "-", until(task.expires_at, now), str(task.attempt), since(task.created_at, now),
    )  # fmt: skip
