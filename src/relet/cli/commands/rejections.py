"""`relet rejections`: writes that were refused under a lost lease."""

from __future__ import annotations

import click

from relet.cli.colour import Paint
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, span, table, when
from relet.core.model import Rejection

HEAD = ("SEQ", "AT", "TASK", "VERB", "HOLDER", "TOKEN", "CURRENT", "REASON", "LATE BY")


@verb("rejections", example="relet rejections --task r-1")
@click.option("--task", "task_id", metavar="ID", help="Only of this task.")
@click.option("--limit", type=int, default=100, help="At most so many, 1000 at the utmost.  [default: 100]")
@click.option("--before", metavar="SEQ", type=int, help="Go on before this one, the last of the page before.")
def rejections(session: Session, task_id: str | None, limit: int, before: int | None) -> None:
    """List writes that were refused under a lost lease, newest first.

    The newest thousand are kept. With --json the result that a refused `complete` brought is there too.
    """
    feed = session.existing().rejections(task_id, limit, before)
    following = feed[-1].seq if len(feed) == limit else None
    if session.json:
        session.answer({"rejections": feed, "next": following})
    elif feed:
        session.data(table(HEAD, [_row(item) for item in session.seen(feed)], Paint(session.color)))
    if not feed:
        session.empty("no refused writes")
    elif following is not None:
        session.talk(f"there may be more → --before {following}")


def _row(item: Rejection) -> tuple[str, ...]:
    return (
        str(item.seq), when(item.at), clean(item.task_id), item.verb, clean(item.holder), str(item.token),
        "-" if item.current_token is None else str(item.current_token), str(item.reason),
        "-" if item.late_ms is None else span(item.late_ms / 1_000),
    )  # fmt: skip
