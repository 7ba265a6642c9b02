"""`relet backup`, `relet restore`: a verified copy, and a store that goes on from one."""

from __future__ import annotations

import click
import msgspec

from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, pairs


@verb("backup", example="relet backup /backups/work-monday.db")
@click.argument("file")
def backup(session: Session, file: str) -> None:
    """Copy the store as it stands now into a new file.

    Others may use the store meanwhile. The copy is read back and verified before this ends. Artifacts are not in it:
    copy their folder after it.
    """
    from relet.connect import file_at

    file_at(session.value("url"))  # a store that is not there must not be made for this
    made = session.client().backup(file)
    if session.json:
        session.answer(msgspec.structs.asdict(made))
        return
    session.data(clean(made.backup))
    session.talk(f"{clean(made.place)}: {made.tasks} tasks, {made.bytes} bytes, verified")
    if made.artifacts:
        session.talk(f"{made.artifacts} artifacts are not in it: copy {clean(str(made.artifacts_at))} too")


@verb("restore", example="relet restore /backups/work-monday.db --url sqlite:////srv/work.db")
@click.argument("backup")
@click.option(
    "--above", metavar="TOKEN", type=int, help="Give out larger tokens than this one, which was seen in use."
)
def restore(session: Session, backup: str, above: int | None) -> None:
    """Put a backup in the place of the store.

    Refused while any process has the store open (exit code 11). The file that was there is kept under another name.
    Leases of the backup have lapsed, effects that were under way are unknown, and tokens go on above all that were
    given out.
    """
    from relet.core.border import invalid
    from relet.store.sqlite.restore import restore as put_back

    url = session.value("url")
    if not url.startswith("sqlite:"):
        raise invalid("url", "is not a SQLite file; only files can be restored")
    done = put_back(url, backup, above=above)
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
    ]))  # fmt: skip
