"""`relet help`: a command's help, and what the exit codes mean."""

from __future__ import annotations

import click

from relet.cli.exits import MEANINGS
from relet.cli.options import verb
from relet.cli.session import Session

TOPIC = "exit-codes"


@verb("help", example="relet help exit-codes\nrelet help claim")
@click.argument("topic", required=False)
def help_(session: Session, topic: str | None) -> None:
    """Explain a command, or the exit codes.

    TOPIC is a command, or exit-codes.
    """
    if topic == TOPIC:
        if session.json:
            session.answer({"exit_codes": [{"code": code, "meaning": MEANINGS[code]} for code in MEANINGS]})
        else:
            session.data("\n".join(f"{code:>3}  {meaning}" for code, meaning in MEANINGS.items()))
        return
    text = _help_of(topic)
    if session.json:
        session.answer({"topic": topic, "text": text})
    else:
        session.data(text)


def _help_of(topic: str | None) -> str:
    from relet.cli.menu import program, unknown_command

    root = click.get_current_context().find_root()
    group = program()
    if topic is None:
        return group.get_help(root)
    command = group.get_command(root, topic)
    if command is None:
        raise click.UsageError(f"{unknown_command(topic)} There is one topic: {TOPIC}", click.get_current_context())
    with click.Context(command, info_name=topic, parent=root) as context:
        return command.get_help(context)
