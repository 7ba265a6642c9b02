"""verify: does all hold that must hold of a store, row by row; read at one moment, while others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from relet.core.upkeep import Finding, Verified, VerifiedLog
from relet.store.migrate import check_version
from relet.store.sqlite.connect import APPLICATION_ID, not_ours
from relet.store.sqlite.lane import FAULTS, translated
from relet.store.sqlite.runner import SQL
from relet.store.statements import load
from relet.store.verify import VERIFY_STATEMENTS, Exists, Looked, Query, findings, verified, verified_log

A = TypeVar("A")
VERIFY_SQL: Final = load("relet.store.sqlite", "verify.sql", VERIFY_STATEMENTS)


def verify(connection: apsw.Connection, place: str, exists: Exists | None) -> Verified:
    """Everything of the store as it stands now; the connection is in no transaction, and writes nothing.

    Raises `Unavailable` where the file cannot be read at all.
    """
    with _one_moment(connection):
        return verified(place, lambda looked: _findings(connection, looked, exists))


def verify_log(connection: apsw.Connection, place: str) -> VerifiedLog:
    """As `verify`, the audit log alone."""
    with _one_moment(connection):
        return verified_log(place, query_of(connection))


@contextmanager
def _one_moment(connection: apsw.Connection) -> Iterator[None]:
    try:
        connection.execute("BEGIN")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")
    except FAULTS as wrong:
        raise translated(wrong) from wrong


def verify_file(path: Path, exists: Exists | None) -> Verified:
    """As `verify`, of a file that this process need not have open: a backup, say."""
    return _of_file(path, lambda connection: verify(connection, str(path), exists))


def verify_log_of(path: Path) -> VerifiedLog:
    """As `verify_file`, the audit log alone."""
    return _of_file(path, lambda connection: verify_log(connection, str(path)))


def _of_file(path: Path, look: Callable[[apsw.Connection], A]) -> A:
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as wrong:
        raise translated(wrong) from wrong
    try:
        if connection.pragma("application_id") != APPLICATION_ID:
            raise not_ours(path, "is no store of relet's")
        least: Any = connection.execute(SQL["read_min_reader"]).fetchone()
        check_version(str(path), int(connection.pragma("user_version") or 0), least[0])
        return look(connection)
    except apsw.Error as wrong:
        raise translated(wrong) from wrong
    finally:
        connection.close()


def _findings(connection: apsw.Connection, looked: Looked, exists: Exists | None) -> Iterator[Finding]:
    for (said,) in connection.execute("PRAGMA integrity_check(100)"):
        if said != "ok":
            yield Finding(rule="file-is-sound", row="file", text=str(said))
    for table, rowid, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield Finding(rule="belongs-to-a-task", row=f"{table} {rowid}", text=f"its row in {parent} is not there")
    yield from findings(query_of(connection), looked, exists)


def query_of(connection: apsw.Connection) -> Query:
    """The statements of verify on a connection."""
    return lambda name: connection.cursor().execute(VERIFY_SQL[name])
