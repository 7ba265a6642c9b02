"""`relet worker`: run an app's handlers until told to end."""

from __future__ import annotations

import click

from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session


@verb("worker", example="relet worker work:app --queues reports,mail --concurrency 4")
@click.argument("app", metavar="MODULE:APP")
@click.option("--queues", metavar="A,B", help="Take from these queues.  [default: all of the app's]")
@click.option("--concurrency", metavar="N", help="Run so many tasks at a time.  [default: 1]")
@click.option("--holder", metavar="NAME", help="The name to claim as.  [default: this host and process]")
@click.option("--grace", metavar="DURATION", default="10s", help="Time to finish after a signal.  [default: 10s]")
def worker(
    session: Session, app: str, queues: str | None, concurrency: str | None, holder: str | None, grace: str
) -> Exit:  # fmt: skip
    """Run an app's handlers on its tasks, until a signal ends it.

    MODULE:APP names the relet.App, as work:app does for `app` in work.py; this folder is searched first. The first
    SIGTERM or SIGINT finishes what is running, the second one stops it.
    """
    from relet.worker.main import run_worker

    ended = run_worker(
        session.client(), app, queues=session.value("queues", queues),
        concurrency=session.value("concurrency", concurrency), holder=session.value("holder", holder), grace=grace,
    )  # fmt: skip
    return Exit(ended)
