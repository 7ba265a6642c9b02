"""`relet tenants`: the namespaces of a store."""

from __future__ import annotations

import click

from relet.cli.colour import Paint
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, table


@verb("tenants", example="relet tenants")
@click.option("--limit", type=int, default=100, help="At most so many, 1000 at the utmost.  [default: 100]")
@click.option("--after", metavar="NAME", default="", help="Go on after this one, the last of the page before.")
def tenants(session: Session, limit: int, after: str) -> None:
    """List the tenants of a store, and how many queues each has.

    Every other command but `doctor` and `sweep` works in one of them: `--tenant`, else RELET_TENANT, else `default`.
    """
    from relet.connect import tenants_at

    found = tenants_at(session.value("url"), after, limit)
    following = found[-1].name if len(found) == limit else None
    if session.json:
        session.answer({"tenants": found, "next": following})
    elif found:
        session.data(table(("TENANT", "QUEUES"), [[clean(one.name), str(one.queues)] for one in found],
                           Paint(session.color)))  # fmt: skip
        if following is not None:
            session.talk(f"there may be more → relet tenants --after {following}")
    if not found:
        session.place = str(session.file(session.value("url")) or "that database")
        session.empty("no tenants")
