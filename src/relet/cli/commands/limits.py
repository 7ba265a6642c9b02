"""`relet limits`: how much of a queue may be held at once, and how much may start in a time."""

from __future__ import annotations

from typing import Any

import click

from relet.cli.bounds import limit_text, rate_text, retention_text, why_waiting
from relet.cli.colour import Paint
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.unused import note_unused
from relet.cli.words import clean, pairs, table
from relet.core.rules.queues import QueueState

HEAD = ("QUEUE", "PAUSED", "CONCURRENCY", "SHARE CONCURRENCY", "RATE", "LIVE", "HELD BACK BY")


def _limit(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | str | None:
    return int(value) if value is not None and value.isascii() and value.isdigit() else value


@verb(
    "limits",
    example="""relet limits reports --concurrency 8 --rate 100/m
relet limits reports --share-concurrency 2
relet limits reports --rate none
relet limits""",
)
@click.argument("queue", required=False)
@click.option("--concurrency", metavar="N", callback=_limit, help="Leases of the queue that may be live at once.")
@click.option("--share-concurrency", metavar="N", callback=_limit, help="The same, of each of its shares.")
@click.option("--rate", metavar="N/TIME", help="Grants in a time, evenly spread: 100/m, 5/s, 10/30s.")
def limits(
    session: Session, queue: str | None, concurrency: int | str | None, share_concurrency: int | str | None,
    rate: str | None,
) -> None:  # fmt: skip
    """Show the limits of a queue, or of all; set those that are given.

    `none` lifts one. Leases that are held go on: a limit that is lowered below them grants nothing until enough of
    them have ended. Without QUEUE all queues are listed, with what keeps their ready tasks waiting, if anything.
    """
    given: dict[str, Any] = {"concurrency": concurrency, "share_concurrency": share_concurrency, "rate": rate}
    if queue is None:
        if any(value is not None for value in given.values()):
            raise click.UsageError("Name the queue whose limits to set.")
        _list(session)
        return
    if any(value is not None for value in given.values()):
        session.client().queue(queue, **given)
    client = session.existing()
    (state,) = client.queues(queue)
    if session.json:
        session.answer(state)
    else:
        session.data(pairs(_facts(state)))
    note_unused(session, client, queue)


def _facts(state: QueueState) -> list[tuple[str, str]]:
    rows = [
        ("queue", clean(state.name) + (" (paused)" if state.paused else "")),
        ("concurrency", limit_text(state.concurrency)),
        ("share concurrency", limit_text(state.share_concurrency)),
        ("rate", rate_text(state.rate, state.rate_ms)),
        ("retention", retention_text(state.retention_ms)),
        ("live", str(state.live)),
    ]
    if state.shares:
        rows.append(("last share", "-" if state.last_share is None else clean(state.last_share)))
    if (why := why_waiting(state)) is not None:
        rows.append(("held back", why))
    return rows


def _list(session: Session) -> None:
    queues = session.existing().queues()
    if session.json:
        session.answer({"queues": queues})
    elif queues:
        rows = [
            [
                clean(one.name), "yes" if one.paused else "no", limit_text(one.concurrency),
                limit_text(one.share_concurrency), rate_text(one.rate, one.rate_ms), str(one.live),
                "-" if one.held_back is None else str(one.held_back),
            ]
            for one in queues
        ]  # fmt: skip
        session.data(table(HEAD, rows, Paint(session.color)))
    if not queues:
        session.empty("no queues")
