"""`relet result`: what a task came to."""

from __future__ import annotations

import click

from relet.cli.answers import answer_command
from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import quoted
from relet.client.blocking import Client
from relet.core.model import State, Task
from relet.core.work import EffectState


@verb("result", example="relet result r-1 --wait 30s")
@click.argument("id")
@click.option("--wait", metavar="DURATION", default="0", help="Wait so long for it, such as 30s.  [default: 0]")
def result(session: Session, id: str, wait: str) -> Exit | None:
    """Print the result of a finished task, as JSON.

    Ends with exit code 1 when the task failed or was cancelled, 124 when it is not finished in time, 7 when it waits
    for a decision.
    """
    client = session.existing()
    try:
        value = client.result(id, wait=wait)
    except TimeoutError:
        task = client.task(id)
        if task.state is State.WAITING:
            return _waiting(session, client, task)
        return session.decline(
            Exit.TIMEOUT,
            "RELET-TIMEOUT",
            f"task {id} is not finished, it is {task.state} → relet show {id}",
            task_id=id,
        )
    session.answer(value)
    return None


def _waiting(session: Session, client: Client, task: Task) -> Exit:
    """What it waits for, and who can end that."""
    wait = next((wait for wait in client.waits(task.id) if wait.open), None)
    effects = client.effects(EffectState.UNKNOWN, task.id)
    way = (wait and answer_command(wait, effects)) or f"relet show {quoted(task.id)}"
    kind = "" if wait is None else f"{wait.kind} "
    return session.decline(
        Exit.WAITING, "RELET-WAITING", f"task {task.id} waits for {kind}{task.waiting_for!r} → {way}",
        task_id=task.id, waiting_for=task.waiting_for,
    )  # fmt: skip
