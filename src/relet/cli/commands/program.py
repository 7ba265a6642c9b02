"""`relet exec`: run any program under a lease."""

from __future__ import annotations

import click

from relet.cli.bounds import held_back_in
from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session
from relet.core.border import invalid


@verb(
    "exec",
    example="""relet exec reports -- python make_report.py
relet exec reports --loop --ttl 2m -- sh -c 'work < "$RELET_INPUT_FILE" > "$RELET_RESULT_FILE"'""",
)
@click.argument("queue")
@click.argument("command", metavar="-- PROGRAM [ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
@click.option("--loop", is_flag=True, help="Go on with the next task, until a signal.")
@click.option("--holder", metavar="NAME", help="The name to claim as.  [default: this host and process]")
@click.option("--ttl", metavar="DURATION", help="How long the lease lasts without a heartbeat.")
@click.option("--wait", metavar="DURATION", help="Wait so long for a task.  [default: 0, with --loop for ever]")
@click.option("--timeout", metavar="DURATION", help="End the program, and fail the attempt, after so long.")
@click.option("--grace", metavar="DURATION", default="5s", help="From TERM to KILL of the program.  [default: 5s]")
def program(
    session: Session, queue: str, command: tuple[str, ...], loop: bool, holder: str | None, ttl: str | None,
    wait: str | None, timeout: str | None, grace: str,
) -> Exit:  # fmt: skip
    """Claim a task, and run a program on it while its lease is kept.

    The program finds its input in the file $RELET_INPUT_FILE, and may write its result, as JSON, to
    $RELET_RESULT_FILE; RELET_HANDLE lets it run `relet save` and the like. When the lease is lost, the program and
    all that it started are killed.

    It ends with 0: the task is complete. 75: tried again. 64-74 and 76-78: failed for good. Else: failed, and tried
    again. `exec` itself ends with 0 complete, 1 failed, 3 nothing to claim, 5 lease lost, 7 waiting, 124 timeout.
    """
    if not command:
        raise invalid("command", "there is none; write it after --, as in: relet exec reports -- python work.py")
    from relet.worker.program import run_program

    ended = run_program(
        session.client(), queue, list(command), loop=loop, holder=session.value("holder", holder),
        ttl=session.value("ttl", ttl), wait=wait, timeout=timeout, grace=grace,
        explain=lambda client: held_back_in(client, [queue]),
    )  # fmt: skip
    return Exit(ended)
