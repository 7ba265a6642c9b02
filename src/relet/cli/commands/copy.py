"""`relet copy`: a store moves from its file into a database."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
import msgspec

from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, pairs, span

if TYPE_CHECKING:
    from relet.store.copying import Copied


@verb(
    "copy",
    example="""relet copy sqlite:///work.db postgresql://db.internal/work --dry-run
relet copy sqlite:///work.db postgresql://db.internal/work
relet copy sqlite:///work.db postgresql://db.internal/work --back""",
)
@click.argument("source")
@click.argument("target")
@click.option("--dry-run", is_flag=True, help="Say what would be copied, and change nothing.")
@click.option("--no-bytes", is_flag=True, help="Do not bring the stored bytes that it names, nor look for them.")
@click.option("--artifacts", metavar="PLACE", help="Where those bytes are.  [default: where the source has them]")
@click.option("--back", is_flag=True, help="Take a copy back that nobody has worked with: the file goes on.")
def copy(
    session: Session, source: str, target: str, dry_run: bool, no_bytes: bool, artifacts: str | None, back: bool
) -> Exit:
    """Move a store from its file into a database.

    For one that has outgrown its file: all of it moves, of all tenants, and tokens go on above all that were given
    out. Refused while any process has the file open, or a lease lives (exit code 11). Nobody can use the copy before
    it is whole and checked; from then on the file can be read, and whoever would write into it is told where its
    store is. It can be killed at any moment, and run again. With findings the exit code is 8, and nothing has moved.
    """
    if back:
        return _back(session, source, target)
    from relet.moving import copy_store

    def told(what: str, n: int) -> None:
        session.talk(f"{what}: {n}" if n else what)

    done = copy_store(source, target, dry_run=dry_run, bytes_too=not no_bytes, artifacts=artifacts, told=told)
    if session.json:
        session.answer(msgspec.structs.asdict(done))
    else:
        _tell(session, done)
    return Exit.OK if done.ok else Exit.FINDINGS


def _tell(session: Session, done: Copied) -> None:
    for finding in done.findings:
        session.data(clean(f"{finding.rule}: {finding.row}: {finding.text}"))
    if done.findings and not done.dry_run:
        session.talk(f"{clean(done.source)} was not moved, and goes on as before")
        return
    rows = [("from", clean(done.source)), ("to", clean(done.place))]
    rows += [(table.replace("_", " "), str(n)) for table, n in done.rows.items() if n]
    if done.artifacts_at is not None:
        rows.append(
            (
                "stored bytes",
                f"{done.artifacts}, {done.artifacts_copied} of them brought to {clean(done.artifacts_at)}",
            )
        )
    rows.append(("epoch", f"{done.epoch}: tokens are larger than {done.tokens_above}"))
    session.data(f"{_said(done)}\n{pairs(rows)}")
    for held in done.held:
        session.talk(
            f"{held.holder} holds task {held.task} of {held.tenant} for another {span(held.left_ms / 1_000)}: now it "
            "would be refused"
        )
    if not done.dry_run:
        session.talk("have every program use the new address; then, if the server makes no backups yet, see to that")


def _said(done: Copied) -> str:
    if done.dry_run:
        return "was copied before" if done.finished else "would copy"
    return "was copied before; it is open now" if done.finished else "copied"


def _back(session: Session, source: str, target: str) -> Exit:
    from relet.moving import copy_back

    gone = copy_back(source, target)
    if session.json:
        session.answer(gone._asdict())
    else:
        session.data("taken back")
        session.talk(
            f"the copy in {clean(gone.place)} can be removed, or made anew → relet copy {shlex.quote(source)} ..."
        )
    return Exit.OK
