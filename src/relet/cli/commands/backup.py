"""`relet backup`, `relet restore`: a verified copy, and a store that goes on from one."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import click
import msgspec

from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, pairs
from relet.core.border import invalid

if TYPE_CHECKING:
    from relet.core.upkeep import Restored


@verb("backup", example="relet backup /backups/work-monday.db")
@click.argument("file")
def backup(session: Session, file: str) -> None:
    """Copy the store as it stands now into a new file.

    Others may use the store meanwhile. The copy is read back and verified before this ends. Artifacts are not in it:
    copy their folder after it, as FILE-artifacts: verify and restore look for them there.
    """
    from relet.artifacts.opening import folder_beside
    from relet.connect import file_at, is_postgres

    if is_postgres(session.value("url")):
        raise invalid(
            "url",
            "is a database of a server, which is backed up by the server's own means: pg_dump --format=custom "
            "--schema=relet --no-unlogged-table-data, or its continuous archive; copy the artifacts after it",
        )
    file_at(session.value("url"))  # a store that is not there must not be made for this
    made = session.client().backup(file)
    if session.json:
        session.answer(msgspec.structs.asdict(made))
        return
    session.data(clean(made.backup))
    session.talk(f"{clean(made.place)}: {made.tasks} tasks, {made.bytes} bytes, verified")
    if made.artifacts:
        at, kept = made.artifacts_at or "", str(folder_beside(made.backup))
        how = f" → cp -a {shlex.quote(at)} {shlex.quote(kept)}" if at == str(folder_beside(made.place)) else ""
        session.talk(clean(f"{made.artifacts} artifacts are not in it: copy {at} too{how}"))


@verb("restore", example="relet restore /backups/work-monday.db --url sqlite:////srv/work.db")
@click.argument("backup")
@click.option(
    "--above", metavar="TOKEN", type=int, help="Give out larger tokens than this one, which was seen in use."
)
@click.option("--no-bytes", is_flag=True, help="Do not look for the stored bytes that it names.")
def restore(session: Session, backup: str, above: int | None, no_bytes: bool) -> None:
    """Put a backup in the place of the store.

    Refused while any process has the store open (exit code 11). The file that was there is kept under another name.
    Leases of the backup have lapsed, effects that were under way are unknown, and tokens go on above all that were
    given out. Stored bytes are in no backup: those that it names and that are not there are named.
    """
    from relet.connect import is_postgres, restore_at

    if is_postgres(session.value("url")):
        raise invalid(
            "url",
            "is a database of a server, which is restored by the server's own means, with no client at work: "
            "pg_restore, where there is no schema of that name. The first client that writes notices it, begins a "
            "new epoch of tokens, and gives open leases a whole ttl; only on a server that does not tell its run "
            "(relet doctor says so) DELETE FROM relet.run before that. See also: relet verify",
        )
    done = restore_at(session.value("url"), backup, above, bytes_too=not no_bytes)
    if session.json:
        session.answer(msgspec.structs.asdict(done))
        return
    session.data("restored\n" + pairs([
        ("store", clean(done.place)),
        ("from", clean(done.backup)),
        ("before", "nothing was there" if done.replaced is None else f"kept as {clean(done.replaced)}"),
        ("epoch", f"{done.epoch}: tokens are larger than {done.tokens_above}"),
        ("leases", f"{done.lapsed} were open, and have lapsed"),
        ("effects", f"{done.unknown} were under way, and are unknown" + (" → relet effects" if done.unknown else "")),
        *([] if done.artifacts_at is None else [("bytes", _bytes(done))]),
    ]))  # fmt: skip
    for uri in done.missing:
        session.talk(f"{uri} is named, and not stored")


def _bytes(done: Restored) -> str:
    if not done.missing:
        return f"{done.artifacts} are named, and are there"
    from relet.artifacts.opening import folder_beside

    at, kept = done.artifacts_at or "", str(folder_beside(done.backup))
    told = f"{len(done.missing)}{' and more' if done.more else ''} of {done.artifacts} are not in {at}: "
    if os.path.isdir(kept) and kept != at:
        return clean(f"{told}bring them → cp -a {shlex.quote(kept)}/. {shlex.quote(at)}/")
    return clean(f"{told}copy there what was kept of the store's artifacts, then → relet verify")
