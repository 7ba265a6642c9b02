"""`relet adopt`: take over a store's file that was moved here."""

from __future__ import annotations

from typing import Any

import click

from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, pairs
from relet.core.border import invalid


@verb("adopt", example="relet adopt --url sqlite:////srv/work.db\nrelet adopt --above 70953427468289 --copy")
@click.option(
    "--above", metavar="TOKEN", type=int, help="Give out larger tokens than this one, which was seen in use."
)
@click.option("--copy", is_flag=True, help="Make it a store of its own, beside the one that it was copied from.")
def adopt(session: Session, above: int | None, copy: bool) -> None:
    """Take over a store's file that was moved here.

    For one that was moved, restored or copied from elsewhere, and that nobody else uses any more, or with --copy.
    Refused while any process has it open (exit code 11). Tokens go on in a new epoch, so that none is given out
    twice; leases that were open last for their whole ttl from now.
    """
    from relet.connect import is_postgres

    url = session.value("url")
    if is_postgres(url):
        raise invalid(
            "url",
            "is a database of a server; only files are adopted. When a server was started anew, or promoted, the "
            "first client that writes notices it and begins a new epoch of tokens; only on a server that does not "
            "tell its run (relet doctor says so) DELETE FROM relet.run before that",
        )
    if not url.startswith("sqlite:"):
        raise invalid("url", "is not a SQLite file; only files can be moved")
    from relet.store.sqlite.adopt import adopt as take_over

    done = take_over(url, above=above, copy=copy)
    if session.json:
        session.answer(done._asdict())
        return
    rows: list[tuple[str, Any]] = [
        ("store", clean(done.place)),
        ("was used", "on another machine, or before this one was started anew" if done.moved else "here"),
        ("id", done.store_id if done.former_id is None else f"{done.store_id}, a copy of {done.former_id}"),
        ("epoch", f"{done.epoch}, after {done.former_epoch}: tokens are larger than {done.tokens_above}"),
        ("leases", f"{done.extended} open ones have a whole ttl from now"),
    ]
    session.data("adopted\n" + pairs(rows))
