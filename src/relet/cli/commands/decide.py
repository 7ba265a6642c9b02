"""`relet decide`, `relet signal`: answer what a task waits for."""

from __future__ import annotations

from typing import Any

import click

from relet.cli.answers import fields, who
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.values import json_of, opened, parsed, read
from relet.cli.words import clean
from relet.core.border import invalid
from relet.core.work import BY_PERSON, NEED_VALUE


@verb(
    "decide",
    example="""relet decide r-1 publish accept
relet decide r-1 publish edit --value '{"title": "Grain, briefly"}' --by ann
relet decide r-1 publish deny --value '"not before Monday"'""",
)
@click.argument("task")
@click.argument("name")
@click.argument("decision", type=click.Choice([str(kind) for kind in BY_PERSON]))
@click.option("--value", metavar="JSON", help="What goes with it: the edited version, what you say, or a reason.")
@click.option("--value-file", metavar="FILE", help="The same, from a file; - for stdin.")
@click.option("--by", metavar="WHO", help="Who decides; kept with the decision.  [default: your login name]")
@click.option("--digest", help="Of the question you were shown: if it has changed since, nothing is decided.")
def decide(
    session: Session, task: str, name: str, decision: str, value: str | None, value_file: str | None, by: str | None,
    digest: str | None,
) -> None:  # fmt: skip
    """Answer a question that a task waits with; the first answer stands.

    accept and edit (with the edited value) let it do what it asked for; respond (with what you say), ignore and deny
    do not. `relet waits` lists the questions. One that was not asked, is answered, or is out of time, is refused
    (exit code 11).
    """
    given = _value(value, value_file)
    if given is None and decision in NEED_VALUE:
        said = "the edited version" if decision == "edit" else "what you say"
        raise invalid("value", f"{decision} carries {said}; give it by --value JSON, or --value-file FILE")
    decided = session.existing().decide(task, name, decision, given, who(by), digest=digest)
    if session.json:
        session.answer({"task_id": task, **fields(decided)})
    else:
        session.data(f"{decided.kind} by {clean(decided.by)}")


def _value(value: str | None, file: str | None) -> Any:
    if file is None:
        return json_of("value", value)
    if value is not None:
        raise invalid("value", "is given twice; leave out --value or --value-file")
    if file == "-":
        return json_of("value", file)
    with opened("--value-file", file) as source:
        return parsed("value", read("value", source))


@verb("signal", example="""relet signal r-1 paid '{"amount": 20}'""")
@click.argument("task")
@click.argument("name")
@click.argument("payload", metavar="[JSON]", required=False)
def signal(session: Session, task: str, name: str, payload: str | None) -> None:
    """Send a value to a task.

    JSON is text, @file, or - for stdin; without it the value is null. Prints `taken` when the task waited for it,
    else `kept`: the next wait of this name takes it, each signal one.
    """
    sent = session.existing().signal(task, name, json_of("payload", payload))
    if session.json:
        session.answer({"task_id": task, "name": name, "taken": sent.taken, "kept": sent.kept})
    else:
        session.data("taken" if sent.taken else "kept")
