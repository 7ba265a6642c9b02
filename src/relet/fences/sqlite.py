"""A fence in a SQLite database of your own: the token is compared in the transaction that writes.

The block holds the write lock. A holder that is stopped inside it therefore blocks everybody, as it would without a
fence, and its successor gets `Unavailable` after `patience`; when the process ends, SQLite undoes what it began.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import apsw

from relet.core import border, limits
from relet.core.errors import Error, Invalid, OutcomeUnknown
from relet.core.holding import check_held
from relet.core.statements import named
from relet.disk.patience import tries
from relet.fences.admission import busy, held, stale, undone

WHERE: Final = "SqliteFence"
SQL: Final = named(
    Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"),
    ("make_table", "raise_fence", "read_fence", "find_table", "guard_table"),
    "fences/sqlite.sql",
)
RELET_STORE: Final = 0x52454C45
"""The application id of a relet store."""
FULL: Final = 2
"""`synchronous` at which what was committed outlives a power cut."""
LOCKED: Final = frozenset({apsw.SQLITE_BUSY, apsw.SQLITE_LOCKED})
WRONG: Final = (sqlite3.Error, apsw.Error)
Connection = TypeVar("Connection", sqlite3.Connection, apsw.Connection)


class SqliteFence(Generic[Connection]):
    """Guards resources in the SQLite database of a `sqlite3.Connection` or an `apsw.Connection`.

    `patience` is how long to wait for the write lock, on top of the connection's own busy timeout; after that the
    answer is `Unavailable`. The file must not be a relet store opened by `sqlite3`: the two SQLite libraries of one
    process drop each other's locks. Raises `Invalid` for any other kind of connection.
    """

    def __init__(self, conn: Connection, *, patience: Any = limits.FENCE_PATIENCE_MS / 1_000) -> None:
        if not isinstance(conn, (sqlite3.Connection, apsw.Connection)):
            raise border.invalid("conn", f"{border.shown(conn)} is no sqlite3.Connection and no apsw.Connection")
        self._conn: Any = conn
        self._patience_ms = border.duration_ms("patience", patience)
        _lend_token(conn)

    def raise_to(self, resource: str, token: int) -> None:
        """Accept nothing smaller than this token from now on. Raises `StaleToken`, `Unavailable`, `Invalid`."""
        with self.write(resource, token):
            pass

    @contextlib.contextmanager
    def write(self, resource: str, token: int) -> Iterator[Connection]:
        """Your connection inside a transaction that is committed at the end of the block, and undone by an exception.

        Raises `StaleToken` before the block begins; `Unavailable` when nothing was written, `OutcomeUnknown` when
        the commit failed; `Invalid` for a connection that is inside a transaction already.
        """
        resource, token = held(resource, token)
        with self._transaction(resource):
            self._admit(resource, token)
            # Ends with the transaction: at the end of the block it tells whether that is still the same one.
            self._conn.execute("SAVEPOINT relet_fence")
            self._conn.execute("SELECT relet_writing(?)", (token,)).fetchall()
            try:
                yield self._conn
                self._still_the_same()
                check_held(token)
            finally:
                with contextlib.suppress(*WRONG):  # a connection that the block has closed writes no more
                    self._conn.execute("SELECT relet_writing(NULL)").fetchall()

    def protect(self, table: str) -> None:
        """Triggers that refuse every insert, update and delete of the table outside `write`, from any connection.

        A connection without a fence has no function `relet_token()`, and fails. Raises `Invalid` without the table.
        """
        name = border.name("table", table)
        with self._transaction(name):
            found = self._row(SQL["find_table"], name)
            if found is None or found[0].lower() == "relet_fence":
                raise border.invalid(
                    "table", f"{border.shown(name)} is no table of this database that can be guarded"
                )
            for verb in ("INSERT", "UPDATE", "DELETE"):
                trigger = quoted(f"relet_fence_{verb.lower()}_{found[0]}")
                self._conn.execute(SQL["guard_table"].format(trigger=trigger, verb=verb, table=quoted(found[0])))

    @contextlib.contextmanager
    def _transaction(self, resource: str) -> Iterator[None]:
        if self._conn.in_transaction:
            raise border.invalid(
                "conn", "is inside a transaction already; commit it or roll it back first, and use a connection with "
                "isolation_level=None, or one of Python 3.12's with autocommit=True",
            )  # fmt: skip
        with self._on_disk():
            self._begin(resource)
            try:
                self._refuse_store()
                yield
                self._commit(resource)
            except BaseException:
                with contextlib.suppress(*WRONG):
                    self._conn.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _on_disk(self) -> Iterator[None]:
        """What a fence has acknowledged must outlive a power cut; the connection's own choice comes back after."""
        try:
            before = int(self._row("PRAGMA synchronous")[0])
            if before < FULL:
                self._conn.execute(f"PRAGMA synchronous={FULL}")
        except WRONG as wrong:
            raise undone(WHERE, wrong) from wrong
        try:
            yield
        finally:
            if before < FULL:
                self._conn.execute(f"PRAGMA synchronous={before}")

    def _begin(self, resource: str) -> None:
        for _ in tries(self._patience_ms):
            try:
                self._conn.execute("BEGIN IMMEDIATE")
            except WRONG as wrong:
                if not _is_busy(wrong):
                    raise undone(WHERE, wrong) from wrong
            else:
                return
        raise busy(WHERE, resource, self._patience_ms, "another writer of this database")

    def _admit(self, resource: str, token: int) -> None:
        try:
            self._conn.execute(SQL["make_table"])
            self._conn.execute(SQL["raise_fence"], (resource, token))
            current = self._row(SQL["read_fence"], resource)[0]
        except WRONG as wrong:
            raise undone(WHERE, wrong) from wrong
        if current > token:
            raise stale(WHERE, resource, token, current)

    def _row(self, statement: str, *values: str) -> Any:
        cursor = self._conn.cursor()
        if isinstance(cursor, sqlite3.Cursor):
            cursor.row_factory = None  # whatever rows the connection makes for its user
        rows = cursor.execute(statement, values).fetchall()
        return rows[0] if rows else None

    def _still_the_same(self) -> None:
        try:
            self._conn.execute("RELEASE relet_fence")
        except WRONG as wrong:
            raise border.invalid(
                "conn", "the block ended the transaction itself, by commit(), executescript() or `with conn:`. What "
                "it wrote before that stays, what came after was not guarded, and is undone where it can be; "
                "leave the commit to the fence",
            ) from wrong  # fmt: skip

    def _commit(self, resource: str) -> None:
        for _ in tries(self._patience_ms):
            try:
                self._conn.execute("COMMIT")
            except (sqlite3.IntegrityError, apsw.ConstraintError):
                raise  # of the user's own rows, and undone
            except WRONG as wrong:
                if not _is_busy(wrong):
                    raise OutcomeUnknown(
                        f"{WHERE}: the commit failed ({wrong}); look at the target before you repeat",
                        code="RELET-COMMIT", resource=resource,
                    ) from wrong  # fmt: skip
            else:
                return
        raise busy(WHERE, resource, self._patience_ms, "readers of this database")

    def _refuse_store(self) -> None:
        if isinstance(self._conn, sqlite3.Connection) and self._row("PRAGMA application_id")[0] == RELET_STORE:
            raise border.invalid(
                "conn", "is open on a relet store by Python's own sqlite3, which in one process with relet drops its "
                "locks; close it, and keep your tables in a file of their own",
            )  # fmt: skip


def quoted(name: str) -> str:
    """An identifier of SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def _is_busy(wrong: Exception) -> bool:
    number = wrong.sqlite_errorcode if isinstance(wrong, sqlite3.OperationalError) else getattr(wrong, "result", 0)
    return number & 0xFF in LOCKED


def _lend_token(conn: Any) -> None:
    """Give the connection the functions of the triggers, once: it may have several fences, and one state."""
    try:
        conn.execute("SELECT relet_token()").fetchall()
    except WRONG as absent:
        if "no such function" not in str(absent):
            raise _unusable(absent) from absent
        state: list[int | None] = [None]
        add = conn.create_function if isinstance(conn, sqlite3.Connection) else _add_to_apsw(conn)
        add("relet_token", 0, lambda: state[0])
        add("relet_writing", 1, lambda token: state.__setitem__(0, token))


def _add_to_apsw(conn: apsw.Connection) -> Any:
    def add(name: str, arguments: int, function: Any) -> None:
        conn.create_scalar_function(name, function, arguments, flags=apsw.SQLITE_INNOCUOUS)

    return add


def _unusable(wrong: Exception) -> Error:
    return Invalid(f"conn: cannot be used ({wrong}); give an open connection", field="conn")
