"""`relet submit`: put tasks into a queue."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click

from relet.cli.options import labels_option, verb
from relet.cli.session import Session
from relet.cli.values import json_lines, json_of, moment_of
from relet.core import limits
from relet.core.border import invalid
from relet.core.model import Task


@verb(
    "submit",
    example="""relet submit reports '{"topic": "grain"}' --id r-1
relet submit reports @input.json --ttl 2m --label team=a
relet submit reports --lines < inputs.ndjson""",
)
@click.argument("queue")
@click.argument("input", metavar="[JSON]", required=False)
@click.option("--id", help="The task's id; repeating it with the same input is safe.  [default: a new one]")
@click.option("--kind", help="Which handler it is for.  [default: the queue's name]")
@click.option("--priority", type=int, default=0, help="Larger comes first.  [default: 0]")
@click.option("--delay", metavar="DURATION", help="Not before so long from now, such as 90s or 2h.")
@click.option("--at", metavar="TIME", help="Not before this time, such as 2027-01-31T18:00:00Z.")
@click.option("--deadline", metavar="TIME", help="Fail it when it was not finished by then.")
@click.option("--ttl", metavar="DURATION", help="How long a lease lasts without a heartbeat.")
@click.option("--timeout", metavar="DURATION", help="How long one attempt may run.")
@click.option("--max-hold", metavar="DURATION", help="How long one lease may be held, heartbeats or not.")
@click.option("--max-attempts", type=int, help="Attempts before it fails for good.")
@click.option("--max-losses", type=int, help="Lapses in a row, without a save, before it fails for good.")
@click.option("--exclusive", metavar="KEY", help="Never run beside another task with this key.")
@click.option("--share", metavar="KEY", help="Take fair turns with the queue's other keys, such as customer-7.")
@labels_option("A label to find it by.")
@click.option("--lines", is_flag=True, help="Each line of @file or stdin is the input of one task; all or none.")
def submit(
    session: Session, queue: str, input: str | None, lines: bool, id: str | None, at: str | None,
    deadline: str | None, **options: Any,
) -> None:  # fmt: skip
    """Put a task, or one for each line, into a queue.

    JSON is the task's input: text, @file, or - for stdin; without it the input is null. Prints the id. An id that
    exists already with the same content is answered as it stands; with other content it is refused (exit code 11).
    """
    options |= {"at": moment_of("at", at), "deadline": moment_of("deadline", deadline)}
    if not lines:
        value = json_of("input", input)
        return _told(session, [session.client().submit(queue, value, id=id, **options)], single=True)
    if id is not None:
        raise invalid("id", "cannot stand beside --lines, where each task gets an id of its own")
    inputs = list(islice(json_lines("input", input), limits.SUBMIT_ITEMS_MAX + 1))
    return _told(session, session.client().submit_many(queue, inputs, **options), single=False)


def _told(session: Session, tasks: list[Task], *, single: bool) -> None:
    if session.json:
        session.answer(tasks[0] if single else {"tasks": tasks})
    else:
        for task in tasks:
            session.data(task.id)
    known = [task for task in tasks if not task.created]
    if single and known:
        session.talk(f"it was there already, and is {known[0].state}")
    elif known:
        session.talk(f"{len(known)} of {len(tasks)} were there already")
    if not tasks:
        session.empty("no input, so no task was made")
