"""A user's own transaction on a store's file: bounded in time, and with relet's tables out of reach."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import apsw

from relet.core.errors import Invalid, Refused
from relet.store.own import too_long
from relet.store.runner import Refusal
from relet.store.sqlite.connect import open_connection
from relet.store.sqlite.engine import SqliteStore
from relet.store.sqlite.lane import begin_patiently, commit, rollback, translated

RELETS: Final = frozenset([
    "meta", "tasks", "inputs", "leases", "checkpoints", "events", "queues", "totals", "rejections",
    "rejection_counts", "steps", "waits", "signals", "artifacts", "effects", "evidence", "late_beats", "tombstones",
    "places", "api_keys", "api_audit", "api_audit_end",
])  # fmt: skip
OF_A_TABLE: Final = frozenset([
    apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE, apsw.SQLITE_CREATE_TABLE, apsw.SQLITE_DROP_TABLE,
    apsw.SQLITE_CREATE_TEMP_TABLE, apsw.SQLITE_CREATE_VIEW, apsw.SQLITE_CREATE_TEMP_VIEW,
    apsw.SQLITE_CREATE_VTABLE, apsw.SQLITE_DROP_VTABLE,
])  # fmt: skip
"""What is done to a table, by its name: the first word that SQLite asks about."""
BESIDE_A_TABLE: Final = frozenset([
    apsw.SQLITE_ALTER_TABLE, apsw.SQLITE_CREATE_INDEX, apsw.SQLITE_DROP_INDEX, apsw.SQLITE_CREATE_TRIGGER,
    apsw.SQLITE_DROP_TRIGGER, apsw.SQLITE_CREATE_TEMP_TRIGGER, apsw.SQLITE_CREATE_TEMP_INDEX,
])  # fmt: skip
"""What is made or dropped for a table: that is the second word."""
NEVER: Final = frozenset([apsw.SQLITE_TRANSACTION, apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH])
ASKING: Final = frozenset([
    "table_info", "table_xinfo", "table_list", "index_info", "index_list", "index_xinfo", "foreign_key_list",
    "foreign_key_check",
])  # fmt: skip
"""Pragmas that may have an argument: it names what they tell about. With any other, an argument sets something."""


class SqliteOwn:
    """One open transaction of the user's."""

    def __init__(self, store: SqliteStore, tenant: str, connection: apsw.Connection, seconds: float) -> None:
        self.connection = connection
        self._store = store
        self._tenant = tenant
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._ending = False
        self.refusals: list[tuple[str, Refusal]] = []
        """What was refused inside of it, to be written down once it has ended."""
        self.over = False
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def begin(self) -> None:
        """Hold the write lock from here on, and watch the time."""
        begin_patiently(self.connection.cursor(), "BEGIN IMMEDIATE")
        self._until = time.monotonic() + self._seconds
        self.connection.authorizer = _guard
        # Whatever else would commit, such as a statement after an INSERT OR ROLLBACK, is rolled back by SQLite.
        self.connection.set_commit_hook(lambda: not self._ending)
        self._store.owns[id(self.connection)] = self
        self._timer.start()

    def call(self, ask: Any) -> Any:
        """The answer to a request inside of the transaction."""
        with self._lock:
            self._go_on()
        return self._store.call_within(self.connection, ask, self._tenant)

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """A block of relet's own statements, which the clock does not end in the middle."""
        with self._lock:
            self._go_on()
            self.connection.authorizer = None
            try:
                yield
            finally:
                self.connection.authorizer = _guard

    def commit(self) -> None:
        """Keep all of it, if there is time left."""
        self._timer.cancel()
        with self._lock:
            self._go_on()
            self.connection.authorizer = None
            self._ending = True
            commit(self.connection.cursor())

    def leave(self) -> None:
        """Undo what was not committed."""
        self._timer.cancel()
        with self._lock:
            self._store.owns.pop(id(self.connection), None)
            self.connection.authorizer = None
            rollback(self.connection)
            self.connection.close()

    def _go_on(self) -> None:
        if self.over or time.monotonic() > self._until:
            raise _too_long(self._seconds)
        if not self.connection.in_transaction:
            raise _ended_within()

    def _end(self) -> None:
        """Time is over: give the lock back, whatever the user's code does; what it writes after is refused."""
        with self._lock:
            self.over = True
            while True:
                try:
                    self.connection.interrupt()
                    self.connection.authorizer = None
                    rollback(self.connection)
                    self.connection.authorizer = _closed
                except apsw.ThreadingViolationError:
                    time.sleep(0.001)  # within a statement, which the interrupt ends
                except (apsw.ConnectionClosedError, apsw.SQLError):
                    return
                else:
                    return


@contextmanager
def own_transaction(store: SqliteStore, tenant: str, seconds: float) -> Iterator[SqliteOwn]:
    """A transaction for a block. Raises `Refused` when it took longer, with all of it undone."""
    if store.path is None:
        raise Invalid(
            "transaction: a private store in memory has one connection and no room for yours; use a file, as in "
            "sqlite:///work.db",
            field="transaction",
        )
    store.check_file()
    try:
        connection = open_connection(store.path, synchronous="full")
    except apsw.Error as wrong:
        raise translated(wrong) from wrong
    own = SqliteOwn(store, tenant, connection, seconds)
    try:
        own.begin()
        yield own
        own.commit()
    except apsw.Error as wrong:
        if own.over:
            raise _too_long(seconds) from wrong
        if isinstance(wrong, apsw.AuthError):
            raise _out_of_reach() from wrong
        if isinstance(wrong, apsw.ConstraintError) and not connection.in_transaction:
            raise _ended_within() from wrong
        raise
    finally:
        own.leave()
        for verb, refusal in own.refusals:
            store.note_refusals(verb, [refusal])


def _guard(action: int, first: str | None, second: str | None, *_: Any) -> int:
    # SQLite takes names in any case, and so must whoever compares them.
    one, two = (first or "").lower(), (second or "").lower()
    denied = (
        action in NEVER
        or (action in OF_A_TABLE and one in RELETS)
        # Not DELETE: SQLite itself does that when a table of the user's is dropped.
        or (action in (apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE) and one == "sqlite_sequence")
        or (action in BESIDE_A_TABLE and two in RELETS)
        # Renamed, a temporary table could stand before one of relet's; the new name is not asked about.
        or (action == apsw.SQLITE_ALTER_TABLE and one == "temp")
        or (action == apsw.SQLITE_PRAGMA and second is not None and one not in ASKING)
    )
    return apsw.SQLITE_DENY if denied else apsw.SQLITE_OK


def _closed(*_: Any) -> int:
    return apsw.SQLITE_DENY


def _out_of_reach() -> Invalid:
    return Invalid(
        "transaction: a statement in it is not allowed here, and all of it was rolled back: it names one of relet's "
        f"tables ({', '.join(sorted(RELETS))}), ends or opens a transaction, attaches a file, or sets a pragma. Use "
        "tables of other names; relet commits at the end of the block",
        field="transaction",
    )


def _ended_within() -> Invalid:
    return Invalid(
        "transaction: a statement in it rolled all of it back (ON CONFLICT ROLLBACK); nothing was written. Use "
        "ON CONFLICT ABORT, which undoes that statement alone",
        field="transaction",
    )


def _too_long(seconds: float) -> Refused:
    return too_long(seconds, "heartbeats")
