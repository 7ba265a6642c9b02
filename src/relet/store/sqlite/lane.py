"""One connection, one lock, one transaction at a time; contention waited out with short, jittered, bounded tries."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import apsw

from relet.core.errors import Error, OutcomeUnknown, Unavailable

A = TypeVar("A")

PATIENCE_MS: Final = 10_000
PAUSE_S_MIN: Final = 0.0003
PAUSE_S_MAX: Final = 0.004
CACHED_STATEMENTS: Final = 200


class Lane:
    """A connection that is opened when first needed, and never used by two threads at once."""

    def __init__(self, name: str, setup: Callable[[], apsw.Connection]) -> None:
        self.name = name
        self._setup = setup
        self.lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._within = False
        self.closed = False

    def transact(self, begin: str, work: Callable[[apsw.Connection], A], patience_ms: int | None = None) -> A:
        """Run `work` between `begin` and COMMIT; anything raised rolls back, and nothing is half done."""
        patience_s = (PATIENCE_MS if patience_ms is None else max(1, patience_ms)) / 1_000
        until = time.monotonic() + patience_s
        if not self.lock.acquire(timeout=patience_s):
            raise busy(patience_s)
        try:
            if self._within:
                raise nested()
            self._within = True
            try:
                return _transact(self.connection(), begin, work, until, patience_s)
            finally:
                self._within = False
        finally:
            self.lock.release()

    def connection(self) -> apsw.Connection:
        """The connection, opened now if it is not; the caller holds the lock."""
        if self.closed:
            raise Unavailable("this client is closed; connect again", code="RELET-CLOSED")
        if self._connection is None:
            try:
                self._connection = self._setup()
            except apsw.Error as wrong:
                raise translated(wrong) from wrong
        return self._connection

    def version(self) -> int:
        """A number that changes when another connection commits."""
        with self.lock:
            try:
                return int(self.connection().data_version())
            except apsw.Error as wrong:
                raise translated(wrong) from wrong

    def disconnect(self) -> None:
        """Close the connection, unless it is within a transaction; the next use opens another."""
        if self._connection is not None and not self._connection.in_transaction:
            self._connection.close()
            self._connection = None

    def abandon(self) -> None:
        """In a forked child: leave the parent's connection alone, without closing it, and take a fresh lock."""
        if self._connection is not None:
            _INHERITED.append(self._connection)
            self._connection = None
        self.lock = threading.RLock()
        self._within = False


_INHERITED: list[apsw.Connection] = []
"""Connections of a parent process; closing one here would disturb the parent's locks."""


def _transact(
    connection: apsw.Connection, begin: str, work: Callable[[apsw.Connection], A], until: float, patience_s: float
) -> A:  # fmt: skip
    # An interrupt of the one before may have come where nothing could undo it any more.
    _rollback(connection)
    try:
        _begin(connection, begin, until, patience_s)
        answer = work(connection)
        _commit(connection)
        return answer
    except apsw.Error as wrong:
        _rollback(connection)
        raise translated(wrong) from wrong
    except BaseException:
        _rollback(connection)
        raise


def _begin(connection: apsw.Connection, begin: str, until: float, patience_s: float) -> None:
    pause_s = PAUSE_S_MIN
    while True:
        try:
            connection.execute(begin)
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() >= until:
                raise busy(patience_s) from None
            # Jittered, so that waiters do not march in step; SQLite's own timeout starves some of them.
            time.sleep(random.uniform(0.3, 1) * pause_s)
            pause_s = min(PAUSE_S_MAX, pause_s * 1.5)
        except apsw.Error as wrong:
            raise translated(wrong) from wrong
        else:
            return


def _commit(connection: apsw.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except apsw.Error as wrong:
        undone = connection.in_transaction
        _rollback(connection)
        if undone or isinstance(wrong, (apsw.FullError, apsw.BusyError)):
            raise translated(wrong) from wrong
        raise OutcomeUnknown(
            f"the store answered the commit with an error ({wrong}); it may or may not have been kept. "
            "Look, or repeat the same request",
            code="RELET-COMMIT",
        ) from wrong


def _rollback(connection: apsw.Connection) -> None:
    # After a full disk or an I/O error SQLite has rolled back by itself, and a second one would be an error.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def busy(patience_s: float) -> Unavailable:
    """Somebody else kept the write lock for too long; nothing was claimed, nothing was written."""
    return Unavailable(
        f"the store stayed locked by another process for {patience_s:g} s; nothing was written, try again. "
        "If it lasts, look for a program that holds a transaction open on this file",
        code="RELET-BUSY",
    )


def nested() -> Unavailable:
    """A signal handler interrupted this very thread within a transaction, and asks for one of its own."""
    return Unavailable(
        "this thread is within a transaction of the store already, which an interrupt must not end; nothing was "
        "written, call again outside of the signal handler",
        code="RELET-BUSY",
    )


def translated(wrong: apsw.Error) -> Error:
    """An engine's error as one of ours; in every case the transaction is undone."""
    facts: dict[str, Any] = {"engine": f"{type(wrong).__name__}: {wrong}"}
    match wrong:
        case apsw.BusyError() | apsw.LockedError():
            return busy(PATIENCE_MS / 1_000)
        case apsw.FullError():
            return Unavailable(
                "the disk is full; nothing was written. Free some space and try again",
                code="RELET-FULL",
                **facts,
            )
        case apsw.ReadOnlyError():
            return Unavailable(
                "the store's file, or its folder, cannot be written by this user; nothing was written, mend their "
                "rights",
                code="RELET-READ-ONLY",
                **facts,
            )
        case apsw.CantOpenError():
            return Unavailable(
                "the store's file, or one beside it, cannot be opened: it is gone, or this user may not write it or "
                "its folder; nothing was written, mend its rights",
                code="RELET-CANNOT-OPEN",
                **facts,
            )
        case apsw.NotADBError() | apsw.CorruptError():
            return Unavailable(
                f"the file is damaged or no SQLite database ({wrong}); nothing was written, restore a backup",
                code="RELET-DAMAGED", **facts,
            )  # fmt: skip
        case _:
            return Unavailable(f"the store's engine failed ({wrong}); nothing was written", code="RELET-IO", **facts)
