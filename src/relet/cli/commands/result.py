"""`relet result`: what a task came to."""

from __future__ import annotations

import click

from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session
from relet.core.model import State


@verb("result", example="relet result r-1 --wait 30s")
@click.argument("id")
@click.option("--wait", metavar="DURATION", default="0", help="Wait so long for it, such as 30s.  [default: 0]")
def result(session: Session, id: str, wait: str) -> Exit | None:
    """Print the result of a finished task, as JSON.

    Ends with exit code 1 when the task failed or was cancelled, 124 when it is not finished in time, 7 when it waits
    for a decision.
    """
    client = session.reader()
    try:
        value = client.result(id, wait=wait)
    except TimeoutError:
        task = client.task(id)
        if task.state is State.WAITING:
            return session.decline(
                Exit.WAITING, "RELET-WAITING", f"task {id} waits for {task.waiting_for or 'a decision'}", task_id=id
            )
        return session.decline(
            Exit.TIMEOUT,
            "RELET-TIMEOUT",
            f"task {id} is not finished, it is {task.state} → relet show {id}",
            task_id=id,
        )
    session.answer(value)
    return None
