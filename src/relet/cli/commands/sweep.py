"""`relet sweep`: close what has lapsed."""

from __future__ import annotations

from relet.cli.options import verb
from relet.cli.session import Session


@verb("sweep", example="relet sweep")
def sweep(session: Session) -> None:
    """Close leases that have expired and tasks past their deadline.

    Prints how many. Claims and workers do this by themselves: it is for a store that nobody works on.
    """
    closed = session.existing().sweep()
    if session.json:
        session.answer({"closed": closed})
    else:
        session.data(str(closed))
    if not closed:
        session.empty("nothing had lapsed")
