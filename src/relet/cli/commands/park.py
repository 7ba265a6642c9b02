"""`relet park`, `relet answer`: ask somebody without holding the task, and read what was answered."""

from __future__ import annotations

from typing import Any

import click

from relet.cli.answers import fields
from relet.cli.commands.ending import told
from relet.cli.exits import Exit
from relet.cli.handles import holder_verb, read_handle
from relet.cli.session import Session
from relet.cli.values import STDIN, json_of
from relet.cli.words import quoted
from relet.client import work_asks
from relet.core import border
from relet.core.work import WaitKind

KINDS = [str(WaitKind.APPROVAL), str(WaitKind.SIGNAL), str(WaitKind.TIMER)]


@holder_verb(
    "park",
    example="""relet park publish --ask '{"draft": "All about grain"}' --handle-file .handle
relet park paid --kind signal --timeout 2d --handle-file .handle
relet park publish --timeout 1h --default deny --handle-file .handle""",
)
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), default=KINDS[0], help="What it waits for.  [default: approval]")
@click.option("--ask", metavar="JSON", help="What is asked: text, @file, or - for stdin.")
@click.option("--timeout", metavar="DURATION", help="Wait no longer than this; a timer ends by it.")
@click.option(
    "--default", metavar="DECISION",
    help="What stands once the time is over: deny, {\"kind\": \"edit\", \"value\": …}, or a signal's payload.",
)  # fmt: skip
def park(
    session: Session, name: str, kind: str, ask: str | None, timeout: str | None, default: str | None,
    handle_file: str | None,
) -> None:  # fmt: skip
    """End a lease with a question: the task waits without a holder.

    It costs no attempt. `relet waits` lists the question, `relet decide` or `relet signal` answers it, and the next
    holder reads the answer by `relet answer`. When the answer is there already, the task is ready at once.
    """
    handle = read_handle(handle_file, stdin_taken=STDIN in (ask, default))
    request = work_asks.park(handle, name, kind, json_of("ask", ask), timeout, _default(kind, default))
    told(session, handle, session.existing().backend.call(request))


def _default(kind: str, text: str | None) -> Any:
    """A decision by its bare name, or JSON."""
    if text is not None and kind == WaitKind.APPROVAL and text.isalpha():
        return text
    return json_of("default", text)


@holder_verb("answer", example="relet answer publish --handle-file .handle")
@click.argument("name")
def answer(session: Session, name: str, handle_file: str | None) -> Exit | None:
    """Print the newest decision under a name, as JSON.

    Any handle of the task reads it, its former holders' too. Ends with exit code 7 while there is none.
    """
    handle = read_handle(handle_file)
    decision = session.existing().lease(border.handle_text(handle)).answer(name)
    if decision is None:
        return session.decline(
            Exit.WAITING, "RELET-WAITING",
            f"nobody has answered {name!r} of task {handle.task_id} yet → relet waits {quoted(handle.task_id)}",
            task_id=handle.task_id, waiting_for=name,
        )  # fmt: skip
    session.answer({"task_id": handle.task_id, **fields(decision)})
    return None
