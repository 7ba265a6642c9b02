"""`relet migrate`: bring a store up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean

if TYPE_CHECKING:
    from relet.core.upkeep import Migrated


@verb("migrate", example="relet migrate --dry-run\nrelet migrate\nrelet migrate --post --url postgresql://db/work")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--post", is_flag=True, help="PostgreSQL: take away what only clients of older releases needed.")
def migrate(session: Session, dry_run: bool, post: bool) -> None:
    """Bring the store's schema up to what this relet needs.

    A file: refused while any process has the store open (exit code 11). A verified copy is made first; then all
    steps are one transaction. Workers of the release before may use the store afterwards, beside those of this one.

    PostgreSQL: while its clients go on, those of the release before too; back it up by its own means first. What is
    left once all of them are of this release is done by --post, which shuts older ones out. It can be killed at any
    moment, and run again.
    """
    from relet.connect import migrate_at

    done = migrate_at(session.value("url"), dry_run=dry_run, post=post)
    if session.json:
        session.answer(msgspec.structs.asdict(done))
        return
    _tell(session, done, post=post)


def _tell(session: Session, done: Migrated, *, post: bool) -> None:
    would = "would be " if done.dry_run else ""
    if not done.steps:
        session.data(f"schema {done.was}, nothing to do")
    elif post:
        session.data(f"{would}closed to clients older than schema {done.schema}: {', '.join(done.steps)}")
    elif done.was == done.schema:
        session.data(f"schema {done.was}; {would}set again: {', '.join(done.steps)}")
    else:
        session.data(f"{would}brought from schema {done.was} to {done.schema}: {', '.join(done.steps)}")
    if done.backup:
        session.talk(f"as it was before: {clean(done.backup)}")
    if done.left and not post:
        session.talk("once no program uses an older relet any more → relet migrate --post")
