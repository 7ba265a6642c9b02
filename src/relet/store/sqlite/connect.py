"""Open connections to one file, make the schema when the file is new, and find out which store it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import apsw

from relet.core.errors import Invalid, Unavailable
from relet.disk.state import state_folder
from relet.store.migrate import MIN_READER, MIN_WRITER, SCHEMA, check_version, check_writer, migrations
from relet.store.sqlite import place
from relet.store.sqlite.clock import StoreClock
from relet.store.sqlite.identity import ClockBase, Identity
from relet.store.sqlite.lane import CACHED_STATEMENTS, Lane, translated
from relet.store.sqlite.marks import Mark, OpenLock, SideFile
from relet.store.sqlite.runner import SQL

APPLICATION_ID: Final = 0x52454C45
"""Marks a SQLite file as ours ("RELE")."""
WAL_BYTES_KEPT: Final = 64 << 20
WAL_PAGES: Final = 1_000
WAL_PAGES_OF_BEATS: Final = 8_000
"""Moving pages waits for the disk, which no heartbeat should: a beat does it only when nobody else writes."""
MEMORY: Final = ":memory:"


def open_connection(
    path: Path | None, *, synchronous: str, linked: bool = True, wal_pages: int = WAL_PAGES, mutex: bool = True
) -> apsw.Connection:
    """A connection in WAL mode; `synchronous` is FULL where acknowledged must mean durable.

    After a commit that leaves more than `wal_pages` in the log, it moves them into the file. Where it is
    not `linked` SQLite does not look for rows that refer to one which is removed. Without `mutex` it may be used
    by one thread at a time only, which its caller sees to: the engine's own lock is some 4 % of a short transaction.
    """
    connection = apsw.Connection(
        MEMORY if path is None else str(path),
        flags=apsw.SQLITE_OPEN_READWRITE
        | (apsw.SQLITE_OPEN_CREATE if path is None else 0)
        | (apsw.SQLITE_OPEN_FULLMUTEX if mutex else apsw.SQLITE_OPEN_NOMUTEX),
        statementcachesize=CACHED_STATEMENTS,
    )
    # Waiting is ours (lane.py): SQLite's own busy handler starves some of the waiters.
    connection.set_busy_timeout(PRAGMA_PATIENCE_MS)
    # Plans stay as they were prepared: else each new value of a parameter prepares the statement again.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", synchronous)
    connection.pragma("fullfsync", True)
    connection.pragma("foreign_keys", linked)
    connection.pragma("journal_size_limit", WAL_BYTES_KEPT)
    connection.wal_autocheckpoint(wal_pages)
    connection.set_busy_timeout(0)
    return connection


PRAGMA_PATIENCE_MS: Final = 5_000
LEAST_FILE_BYTES: Final = 512
"""One page of the smallest size; SQLite takes a shorter file for an empty one, and writes over it."""


def check_file(path: Path) -> None:
    """Refuse what may not hold a store: an old engine, a network file system, somebody else's database."""
    place.check_engine()
    place.check_file_system(path)
    if place.create(path):
        return
    if not is_database(path):
        raise not_ours(path, "is not a SQLite database")


def is_database(path: Path) -> bool:
    """Does SQLite take a file that is there for one of its own. Raises `Invalid` for another program's."""
    if not path.is_file():
        raise not_ours(path, "is not a file")
    if 0 < path.stat().st_size < LEAST_FILE_BYTES:
        return False
    # Looked at by SQLite alone, and without a write: closing a descriptor of our own would drop the locks that
    # other connections of this process hold on the file, and setting WAL mode would change somebody else's.
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(PRAGMA_PATIENCE_MS)
            _check_owner(connection, path)
        finally:
            connection.close()
    except apsw.NotADBError:
        return False
    except apsw.Error as wrong:
        raise translated(wrong) from wrong
    return True


def _check_owner(connection: apsw.Connection, path: Path) -> None:
    found = int(connection.pragma("application_id") or 0)
    if found not in (0, APPLICATION_ID):
        raise not_ours(path, f"belongs to another program (application id {found:#x})")
    if not found and connection.execute(SQL["count_tables"]).fetchone() != (0,):
        raise not_ours(path, "holds the tables of another program")


def not_ours(path: Path | str, problem: str, field: str = "url") -> Invalid:
    """The file is there, and not a relet store; it is left as it was."""
    name = "a new file, or the store that you meant" if field == "url" else "the file that you meant"
    return Invalid(
        f"{field}: {path} {problem}; it was left as it is. Name {name}",
        field=field, path=str(path), code="RELET-NOT-A-STORE",
    )  # fmt: skip


def make_schema(connection: apsw.Connection, path: Path | str, clock: StoreClock) -> bool:
    """Make the tables in a new file, or check those of an old one; were they made. The caller holds the lock."""
    if connection.pragma("application_id") == APPLICATION_ID:
        row: Any = connection.execute(SQL["read_min_reader"]).fetchone()
        check_version(str(path), int(connection.pragma("user_version") or 0), row[0])
        return False
    for step in migrations("relet.store.sqlite", SCHEMA):
        connection.execute(step.text)
    connection.execute(SQL["insert_meta"], {
        "store_id": os.urandom(16).hex(), "secret_key": os.urandom(32), "min_reader": MIN_READER,
        "min_writer": MIN_WRITER, **clock.boot._asdict(),
        "mono_base_ms": clock.mono_ms(), "wall_at_base_ms": clock.wall_ms(),
    })  # fmt: skip
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", SCHEMA)
    return True


def identify(lane: Lane, path: Path | None, clock: StoreClock, state: Path | None) -> Identity:
    """Who this store is. After a reboot of the same machine its clock goes on and its leases are extended."""

    def work(connection: apsw.Connection) -> tuple[str, bytes, ClockBase]:
        made = make_schema(connection, path or MEMORY, clock)
        row: Any = connection.execute(SQL["read_identity"]).fetchone()
        store_id, secret_key, boot_id, time_namespace, machine_id, mono_ms, store_ms = row
        if made and path is not None:
            # Within the same lock, so that a missing mark always means that it was lost.
            SideFile(state or state_folder(), store_id).write(Mark(0, 0))
        if boot_id != clock.boot.boot_id:
            check_machine(path, machine_id, clock)
            meta: Any = connection.execute(SQL["read_meta"]).fetchone()
            if meta[0] > SCHEMA:
                from relet.store.sqlite.gone import check_here

                check_here(connection.execute, meta[0])
            check_writer(meta[0])
            return store_id, secret_key, settle_boot(connection, clock)
        if time_namespace != clock.boot.time_namespace:
            raise Unavailable(
                f"{path} was opened in another time namespace, whose clock is shifted against this one; "
                "run all its users in the same namespace",
                code="RELET-TIME-NAMESPACE",
            )
        if not boot_id:
            # Without a boot id store time is the wall's, held to the last reading that was committed.
            store_ms += clock.mono_ms() - mono_ms
            last: Any = connection.execute(SQL["last_reading"]).fetchone()
            return store_id, secret_key, ClockBase(clock.mono_ms(), max(store_ms, int(last[0])))
        return store_id, secret_key, ClockBase(mono_ms, store_ms)

    # Before anything is read: who takes the file over (adopt) waits for nobody to hold this.
    opened = None if path is None else OpenLock(path.with_name(f"{path.name}-open"))
    try:
        store_id, secret_key, base = lane.transact("BEGIN IMMEDIATE", work)
    except BaseException:
        if opened is not None:
            opened.close()
        raise
    side = None if path is None else SideFile(state or state_folder(), store_id)
    return Identity(store_id=store_id, secret_key=secret_key, clock=clock, base=base, side=side, opened=opened)


def check_machine(path: Path | None, machine_id: str, clock: StoreClock) -> None:
    """Another boot is fine on the same machine; on another, or an unknown one, the file was moved."""
    if machine_id and machine_id == clock.boot.machine_id:
        return
    raise Unavailable(
        f"{path} was last used on another machine (or on one without /etc/machine-id, before it booted): moved, "
        "restored or shared. If no other copy of it is in use, take it over → relet adopt",
        code="RELET-MOVED",
    )


def settle_boot(connection: apsw.Connection, clock: StoreClock) -> ClockBase:
    """The outage rule: time went on by nothing, and what was live is live for a ttl from now."""
    row: Any = connection.execute(SQL["last_reading"]).fetchone()
    base = ClockBase(clock.mono_ms(), int(row[0]))
    wall_ms = clock.wall_ms()
    connection.execute(SQL["extend_all_open"], {"now_ms": base.store_ms})
    connection.execute(SQL["rebase_clock"], {
        **clock.boot._asdict(), "mono_base_ms": base.mono_ms, "store_base_ms": base.store_ms,
        "wall_at_base_ms": wall_ms,
    })  # fmt: skip
    note_outage(connection, base.store_ms, wall_ms, "new boot")
    return base


def note_outage(connection: apsw.Connection, store_ms: int, wall_ms: int, why: str) -> None:
    """Write down that there was one, which belongs to no task."""
    connection.execute(SQL["add_event"], {
        "seq": None, "task_seq": None, "before": 0, "kind": "outage", "state": None, "token": None, "holder": None,
        "at_ms": store_ms, "wall_ms": wall_ms, "detail": f'{{"why":"{why}"}}',
    })  # fmt: skip
