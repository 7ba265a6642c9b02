"""`relet renew`: keep a lease that you still hold. Run by shell hooks, so it loads as little as it can."""

from __future__ import annotations

import click

from relet.cli.handles import holder_verb, read_handle
from relet.cli.session import Session
from relet.client.renewal import renewal
from relet.core.errors import Error
from relet.core.rules.renew import Renewed


@holder_verb("renew", example="relet renew --handle-file .handle\nRELET_HANDLE=$handle relet renew")
@click.option("--ttl", metavar="DURATION", help="Another ttl for this one beat.  [default: the lease's]")
def renew(session: Session, ttl: str | None, handle_file: str | None) -> None:
    """Renew a lease: it ends a ttl from now.

    Ends with exit code 5 when the lease is lost: then stop the work, and discard it.
    """
    handle = read_handle(handle_file)
    answer: Renewed | Error = session.backend().call(renewal([handle], ttl))[0]
    if isinstance(answer, Error):
        raise answer
    left = answer.left_ms / 1_000
    if session.json:
        session.answer({
            "task_id": handle.task_id, "token": handle.token, "expires_in": left, "capped": answer.capped,
        })  # fmt: skip
        return
    session.data(f"{left:g}")
    if answer.capped:
        session.talk("this was the last renewal: the lease reaches the longest time it may be held")
