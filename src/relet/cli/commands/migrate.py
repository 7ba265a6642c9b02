"""`relet migrate`: bring a store up to date."""

from __future__ import annotations

import click
import msgspec

from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean
from relet.core.border import invalid


@verb("migrate", example="relet migrate --dry-run\nrelet migrate")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
def migrate(session: Session, dry_run: bool) -> None:
    """Bring the store's schema up to what this relet needs.

    Refused while any process has the store open (exit code 11). A verified copy is made first; then all steps are
    one transaction. Workers of the release before may use the store afterwards, beside those of this one.
    """
    from relet.store.sqlite.upgrade import migrate as bring_up

    url = session.value("url")
    if not url.startswith("sqlite:"):
        raise invalid("url", "is not a SQLite file; only those are migrated by this command")
    done = bring_up(url, dry_run=dry_run)
    if session.json:
        session.answer(msgspec.structs.asdict(done))
        return
    if not done.steps:
        session.data(f"schema {done.was}, nothing to do")
        return
    would = "would be brought" if dry_run else "brought"
    session.data(f"{would} from schema {done.was} to {done.schema}: {', '.join(done.steps)}")
    if done.backup:
        session.talk(f"as it was before: {clean(done.backup)}")
