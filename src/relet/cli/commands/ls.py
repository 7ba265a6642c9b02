"""`relet ls`: the tasks of a store."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from relet.cli.colour import Paint
from relet.cli.options import labels_option, state_option, verb
from relet.cli.session import Session
from relet.cli.words import clean, now_utc, quoted, since, state_word, table, until
from relet.client.blocking import Client
from relet.core.limits import PAGE_ITEMS_MAX
from relet.core.model import State, Task

HEAD = ("ID", "QUEUE", "STATE", "HOLDER", "TOKEN", "EXPIRES IN", "ATTEMPT", "AGE")


@verb("ls", example="relet ls --queue reports --state leased")
@click.option("--queue", help="Only this queue's.")
@click.option("--kind", help="Only of this kind.")
@state_option("Only in this state.")
@labels_option("Only with this label.")
@click.option("--lost", is_flag=True, help="Only those that a holder has lost: what was, or is to be, taken over.")
@click.option("--limit", type=int, default=100, help="At most so many, 1000 at the utmost.  [default: 100]")
@click.option("--after", metavar="ID", help="Go on after this task, the last one of the page before.")
def ls(
    session: Session, queue: str | None, kind: str | None, state: str | None, labels: dict[str, str] | None,
    lost: bool, limit: int, after: str | None,
) -> None:  # fmt: skip
    """List tasks in the order in which they were made.

    A lease that is past its heartbeat reads `at risk`, one that expired and was not yet taken back `lapsed`.
    """
    client = session.existing()
    which: dict[str, Any] = {"queue": queue, "state": state, "labels": labels, "kind": kind}
    tasks = _lost(client, which, limit, after) if lost else client.tasks(**which, limit=limit, after=after)
    following = tasks[-1].id if len(tasks) == limit else None
    if session.json:
        session.answer({"tasks": tasks, "next": following})
    elif tasks:
        now, paint = now_utc(), Paint(session.color)
        session.data(table(HEAD, [_row(task, now, paint) for task in session.seen(tasks)], paint))
    if not tasks:
        session.empty("no such task" if any((queue, kind, state, labels, after, lost)) else "no tasks")
    elif following is not None:
        session.talk(f"there may be more → --after {quoted(following)}")


def _lost(client: Client, which: dict[str, Any], limit: int, after: str | None) -> list[Task]:
    """The first of those that lost a lease, however many others are between them."""
    found: list[Task] = []
    while len(found) < limit:
        page = client.tasks(**which, limit=PAGE_ITEMS_MAX, after=after)
        found += [task for task in page if task.losses]
        if len(page) < PAGE_ITEMS_MAX:
            break
        after = page[-1].id
    return found[:limit]


def _row(task: Task, now: datetime, paint: Paint) -> tuple[str, ...]:
    held = task.state is State.LEASED
    return (
        clean(task.id), clean(task.queue), state_word(task, now, paint), clean(task.holder) if held else "-",
        str(task.token) if held else "-", until(task.expires_at, now), str(task.attempt), since(task.created_at, now),
    )  # fmt: skip
