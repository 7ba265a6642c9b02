"""`relet artifacts`: the bytes that are kept with a task, and the removal of those that nobody names."""

from __future__ import annotations

import os

import click

from relet.cli.colour import Paint
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, table, when
from relet.client.views import Collected
from relet.core.border import invalid
from relet.core.work import Artifact

HEAD = ("NAME", "BYTES", "TOKEN", "AT", "URI")


@verb("artifacts", example="relet artifacts r-1\nrelet artifacts --collect --older 7d --dry-run")
@click.argument("task", required=False)
@click.option("--collect", is_flag=True, help="Remove bytes that nothing names any more, instead of listing.")
@click.option("--older", metavar="DURATION", help="With --collect: put so long ago, an hour at least.  [default: 1d]")
@click.option("--dry-run", is_flag=True, help="With --collect: say how much, and remove nothing.")
@click.option("--yes", is_flag=True, help="With --collect: the place of RELET_ARTIFACTS is no other store's.")
def artifacts(
    session: Session, task: str | None, collect: bool, older: str | None, dry_run: bool, yes: bool
) -> None:  # fmt: skip
    """List the artifacts of a task, or collect what nobody names.

    Listed in the order in which they were attached; `relet cat TASK NAME` prints the bytes of the newest of a name.
    A collection looks at all that is stored, whichever task or tenant of this store it was for.
    """
    if (task is not None) == collect:
        raise invalid("task", "give one task's id, or --collect")
    if collect:
        return _collect(session, "1d" if older is None else older, dry_run=dry_run, yes=yes)
    if older is not None or dry_run or yes:
        raise invalid("collect", "is missing; --older, --dry-run and --yes go with it")
    assert task is not None, "looked at above"
    found = session.existing().artifacts(task)
    if session.json:
        session.answer({"task_id": task, "artifacts": found})
    elif found:
        session.data(table(HEAD, [_row(one) for one in found], Paint(session.color)))
    if not found:
        session.empty(f"no artifacts of task {clean(task)}")
    return None


def _row(one: Artifact) -> tuple[str, ...]:
    return clean(one.name), str(one.size), str(one.token), when(one.at), one.uri


def _collect(session: Session, older: str, *, dry_run: bool, yes: bool) -> None:
    shared = os.environ.get("RELET_ARTIFACTS")
    if shared and not (dry_run or yes):
        raise invalid(
            "yes",
            f"is missing: all that {session.value('url')} does not name would be removed from {shared}; if another "
            "store keeps its artifacts there they are lost. Nothing was removed; add --yes when none does",
        )
    path, client = session.file(session.value("url")), session.existing()
    done = Collected(n=0, bytes=0, dry_run=dry_run)
    # Where there is no store nothing is named, so that all of the place would go: its URL is mistyped.
    if path is None or path.exists():
        done = client.collect(older, dry_run)
    if session.json:
        session.answer(done)
    else:
        session.data(f"{done.n} artifacts, {done.bytes} bytes")
    if dry_run and done.n:
        session.talk("nothing was removed")
    elif not done.n:
        session.empty("nothing to collect")
