"""`relet copy`: a store moves from its file into a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from relet.cli.exits import Exit
from relet.cli.faults import told
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, pairs, span
from relet.core.border import invalid
from relet.core.pasting import command

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
@click.option("--dry-run", is_flag=True, help="Say what would be copied, or taken back, or why not; change nothing.")
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
        for name, given in (("--no-bytes", no_bytes), ("--artifacts", artifacts is not None)):
            if given:
                raise invalid(name, "says how bytes are brought along, and --back brings none; leave it out")
        return _back(session, source, target, dry_run=dry_run)
    from relet.moving import copy_store

    def progress(what: str, n: int) -> None:
        session.talk(f"{what}: {n}" if n else what)

    done = copy_store(source, target, dry_run=dry_run, bytes_too=not no_bytes, artifacts=artifacts, told=progress)
    if session.json:
        refused = [told(error, None) for error in done.refused]
        session.answer(msgspec.structs.asdict(done) | {"refused": refused})
    else:
        _tell(session, done)
    if done.refused:
        raise done.refused[0]
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
            f"{held.holder} holds task {held.task} of {held.tenant} for another {span(held.left_ms / 1_000)}"
        )
    for refused in done.refused[1:]:
        session.talk(f"it would be refused for this too: {refused.message} [{refused.code}]")
    if not done.dry_run:
        session.talk("have every program use the new address; then, if the server makes no backups yet, see to that")


def _said(done: Copied) -> str:
    if done.dry_run:
        if done.refused:
            return "would be refused now"
        return "was copied before" if done.finished else "would copy"
    return "was copied before; it is open now" if done.finished else "copied"


def _back(session: Session, source: str, target: str, *, dry_run: bool) -> Exit:
    from relet.moving import copy_back

    gone = copy_back(source, target, dry_run=dry_run)
    if session.json:
        session.answer(gone._asdict() | {"dry_run": dry_run})
    elif dry_run and not gone.already:
        session.data("would take back")
        session.talk(f"nobody has worked with the copy in {gone.place}: it would be shut; nothing was changed")
    else:
        session.data("is back already" if gone.already else "taken back")
        again = command("copy", source, gone.place)
        session.talk(f"the copy in {gone.place} is shut: remove it, or make it anew → {again}")
    return Exit.OK
