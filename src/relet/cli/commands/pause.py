"""`relet pause`, `relet unpause`: a paused queue grants nothing."""

from __future__ import annotations

import click
import msgspec

from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.unused import note_unused


@verb("pause", example="relet pause reports")
@click.argument("queue")
def pause(session: Session, queue: str) -> None:
    """Stop a queue from granting tasks; leases that are held go on."""
    _set(session, queue, paused=True)


@verb("unpause", example="relet unpause reports")
@click.argument("queue")
def unpause(session: Session, queue: str) -> None:
    """Let a paused queue grant tasks again."""
    _set(session, queue, paused=False)


def _set(session: Session, queue: str, *, paused: bool) -> None:
    client = session.client()
    row = client.queue(queue, paused=paused)
    if session.json:
        session.answer(msgspec.structs.asdict(row))
    else:
        session.data("paused" if row.paused else "open")
    note_unused(session, client, queue)
