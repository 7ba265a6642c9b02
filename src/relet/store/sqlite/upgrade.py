"""migrate: bring a store up to the schema that this relet needs; by an operator, with a backup, all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

from relet.core.upkeep import Migrated, Verified
from relet.store.migrate import MIN_READER, MIN_WRITER, SCHEMA, Migration, check_reader, migrations
from relet.store.sqlite.alone import alone, check_ours, file_of, one
from relet.store.sqlite.backup import backup, copy_into
from relet.store.sqlite.clock import StoreClock, SystemClock
from relet.store.sqlite.connect import open_connection
from relet.store.sqlite.lane import Lane
from relet.store.sqlite.runner import SQL
from relet.store.sqlite.verify import verify_file
from relet.store.statements import load
from relet.store.verify import Exists

UPGRADE_SQL: Final = load("relet.store.sqlite", "upgrade.sql", ["set_least"])


def migrate(url: str, *, dry_run: bool = False, clock: StoreClock | None = None) -> Migrated:
    """Apply the steps that the store's file does not have yet, in one transaction; none are left half done.

    Raises `Conflict` while anybody has the store open, `UpgradeRequired` for a file of a later relet.
    """
    path = file_of(url)
    clock = clock or SystemClock()
    with alone(path, "migrate"):
        lane = Lane("migrate", lambda: open_connection(path, synchronous="full"))
        try:
            connection = lane.connection()
            check_ours(connection, path)
            was = int(connection.pragma("user_version") or 0)
            check_reader(str(path), was, one(connection, SQL["read_min_reader"])[0])
            steps = [step for step in migrations("relet.store.sqlite", SCHEMA) if step.number > was]
            copy = None
            if steps and not dry_run:
                at = datetime.fromtimestamp(clock.wall_ms() / 1_000, UTC)
                to = path.with_name(f"{path.name}.schema-{was}-{at:%Y%m%dT%H%M%S.%f}")
                copy = backup(connection, str(path), to, None, verified_by=rehearsal(steps)).backup
                lane.transact("BEGIN EXCLUSIVE", lambda connection: _apply(connection, steps))
        finally:
            lane.disconnect()
    return Migrated(
        place=str(path), was=was, schema=max(was, SCHEMA), steps=[step.name for step in steps], backup=copy,
        dry_run=dry_run,
    )  # fmt: skip


def rehearsal(steps: list[Migration]) -> Callable[[Path, Exists | None], Verified]:
    """How a copy of an older schema is verified: a copy of it is migrated, and holds what must hold of a store."""

    def verified(copy: Path, exists: Exists | None) -> Verified:
        draft = copy.with_name(f"{copy.name}-rehearsal")
        source = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY)
        copy_into(source, draft)
        source.close()
        try:
            connection = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE)
            with connection:
                _apply(connection, steps)
            connection.close()
            return verify_file(draft, exists)
        finally:
            draft.unlink(missing_ok=True)

    return verified


def _apply(connection: apsw.Connection, steps: list[Migration]) -> None:
    for step in steps:
        connection.execute(step.text)
    connection.execute(UPGRADE_SQL["set_least"], {"reader": MIN_READER, "writer": MIN_WRITER})
    connection.pragma("user_version", SCHEMA)
