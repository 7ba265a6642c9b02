"""`relet verify`: does all hold that must hold of a store."""

from __future__ import annotations

from typing import Final

import click
import msgspec

from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean

BYTES: Final = "bytes-are-there"


@verb("verify", example="relet verify --url sqlite:////srv/work.db\nrelet verify --no-bytes --json")
@click.option("--no-bytes", is_flag=True, help="Do not look for the stored bytes that it names.")
@click.option("--artifacts", metavar="PLACE", help="Where those bytes are; of a backup, the store's own folder, say.")
def verify(session: Session, no_bytes: bool, artifacts: str | None) -> Exit:
    """Check a store, or a backup, row by row.

    One current token for each task, tokens that grow, open leases that match states, states that match the history,
    attempts, waits, receipts, totals, chains of events, bytes that are named and stored. Nothing is written, and
    others may use the store meanwhile. Bytes are looked for in FILE-artifacts, unless RELET_ARTIFACTS or --artifacts
    names another place. With findings the exit code is 8.
    """
    from relet.connect import verify_at

    verified = verify_at(session.value("url"), bytes_too=not no_bytes, artifacts=artifacts)
    if session.json:
        session.answer(msgspec.structs.asdict(verified))
        return Exit.OK if verified.ok else Exit.FINDINGS
    for finding in verified.findings:
        session.data(clean(f"{finding.rule}: {finding.row}: {finding.text}"))
    if any(finding.rule == BYTES for finding in verified.findings):
        session.talk(
            f"bytes were looked for in {clean(verified.artifacts_at)}; if they are in another place, as those of a "
            "backup may be → relet verify --artifacts PLACE"
        )
    session.talk(
        f"{verified.place}: {verified.tasks} tasks, {verified.leases} leases, {verified.events} events, "
        f"{verified.artifacts} stored bytes: {_said(len(verified.findings), more=verified.more)}"
    )
    return Exit.OK if verified.ok else Exit.FINDINGS


def _said(n: int, *, more: bool) -> str:
    if not n:
        return "all holds"
    return f"{n}{' findings, and more' if more else ' findings' if n > 1 else ' finding'}"
