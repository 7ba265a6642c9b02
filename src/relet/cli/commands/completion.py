"""`relet completion`: what makes a shell complete relet's words."""

from __future__ import annotations

import click

from relet.cli.options import verb
from relet.cli.session import Session


@verb(
    "completion",
    example="""eval "$(relet completion bash)"
relet completion fish > ~/.config/fish/completions/relet.fish""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(session: Session, shell: str) -> None:
    """Print what makes a shell complete relet's words."""
    from click.shell_completion import get_completion_class

    from relet.cli.main import COMPLETE_VARIABLE
    from relet.cli.menu import program

    kind = get_completion_class(shell)
    assert kind is not None, "the choice above lists shells that click knows"
    source = kind(program(), {}, "relet", COMPLETE_VARIABLE).source()
    if session.json:
        session.answer({"shell": shell, "source": source})
    else:
        session.data(source)
