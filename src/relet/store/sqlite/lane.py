"""One connection, one lock, one transaction at a time; contention waited out with short, jittered, bounded tries."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import apsw

from relet.core.errors import DAMAGED, Error, OutcomeUnknown, Unavailable
from relet.store.sqlite.gate import Gate

A = TypeVar("A")

PATIENCE_MS: Final = 10_000
PAUSE_S_MIN: Final = 0.0003
PAUSE_S_MAX: Final = 0.004
CACHED_STATEMENTS: Final = 200
NAMED_FROM_S: Final = 1.0
"""Who waits for less asks often, and for no more than whether to go on waiting."""


FAULTS: Final = (apsw.Error, UnicodeDecodeError)
"""What the engine raises, and what its driver does where a text in the file is none."""


class Lane:
    """A connection that is opened when first needed, and never used by two threads at once."""

    def __init__(self, name: str, setup: Callable[[], apsw.Connection], gate: Gate | None = None) -> None:
        self.name = name
        self._setup = setup
        self._gate = gate
        self.lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._cursor: apsw.Cursor | None = None
        self.closed = False

    def transact(self, begin: str, work: Callable[[apsw.Connection], A], patience_ms: int | None = None) -> A:
        """Run `work` between `begin` and COMMIT; anything raised rolls back, and nothing is half done."""
        patience_s = patience_of(patience_ms)
        try:
            return self.attempt(begin, work, 0.0, patience_s)
        except NotYet as not_yet:
            by_thread = not_yet.by_thread
        until = time.monotonic() + patience_s
        pause_s = PAUSE_S_MIN
        while True:
            if not by_thread:
                pause_s = pause(pause_s)  # without the lane's lock, which other threads and a fork need
            left_s = max(0.0, until - time.monotonic())
            try:
                return self.attempt(begin, work, left_s, left_s)
            except NotYet as not_yet:
                if time.monotonic() >= until:
                    raise busy(patience_s, self._connection) from None
                by_thread = not_yet.by_thread

    def attempt(
        self, begin: str, work: Callable[[apsw.Connection], A], wait_s: float, gate_s: float,
        company: Company | None = None,
    ) -> A:  # fmt: skip
        """Try once. Raises `NotYet` when somebody else is within a transaction.

        `wait_s` bounds the wait for other threads, `gate_s` that for a turn between processes. `company` may let
        others into the transaction after `work`, and hears what became of it.
        """
        lock: Any = self.lock  # there is no public way to ask whose it is
        is_mine = lock._is_owned  # noqa: SLF001
        inner = is_mine()
        try:
            if not lock.acquire(timeout=wait_s):
                raise NotYet(by_thread=True)
            if inner:
                raise nested()
            if company is not None:
                company.enter()
            connection = self.connection()
            if self._gate is not None:
                self._gate.enter(gate_s)
            return _transact(connection, self._cursor or self.cursor(), begin, work, company)
        finally:
            # By asking whose it is, and not by remembering: an interrupt may come between the two.
            try:
                if self._gate is not None and not inner and is_mine():
                    self._gate.leave()
            finally:
                while not inner and is_mine():
                    lock.release()

    def connection(self) -> apsw.Connection:
        """The connection, opened now if it is not; the caller holds the lock."""
        if self.closed:
            raise Unavailable("this client is closed; connect again", code="RELET-CLOSED")
        if self._connection is None:
            if _INHERITED:
                raise forked()
            try:
                self._connection = self._setup()
            except apsw.Error as wrong:
                raise translated(wrong) from wrong
        return self._connection

    def cursor(self) -> apsw.Cursor:
        """The one cursor of the connection; making one costs as much as a short statement."""
        if self._cursor is None:
            self._cursor = self.connection().cursor()
        return self._cursor

    def version(self) -> int:
        """A number that changes when another connection commits; in memory, where none is, when this one writes."""
        with self.lock:
            try:
                if not self.connection().filename:
                    return self.connection().total_changes()
                # The pragma looks into the file; apsw's data_version() tells only what an earlier read has seen.
                version: Any = self.connection().pragma("data_version")
                return int(version)
            except apsw.Error as wrong:
                raise translated(wrong) from wrong

    def disconnect(self) -> None:
        """Close the connection, unless it is within a transaction; the next use opens another."""
        if self._connection is not None and not self._connection.in_transaction:
            self._connection.close()
            self._connection = self._cursor = None
            if self._gate is not None:
                self._gate.close()

    def abandon(self) -> None:
        """In a forked child: a fresh lock, and no connection of the parent's."""
        connection, self._connection, self._cursor = self._connection, None, None
        self.lock = threading.RLock()
        if self._gate is not None:
            self._gate.abandon()
        if connection is None:
            return
        try:
            if not connection.in_transaction:
                connection.close()
                return
        except apsw.ThreadingViolationError:
            pass  # a thread that is not here was within the engine
        _INHERITED.append(connection)


_INHERITED: list[apsw.Connection] = []
"""Connections that a fork caught in the middle of a transaction. The engine counts locks by process: while one of
these is around it takes no locks of its own on the file, and so another process could remove the log under it."""


class Fate(Enum):
    """What became of a transaction that several share."""

    OPEN = "open"
    KEPT = "kept"
    UNDONE = "undone"
    UNKNOWN = "unknown"


class Company(Protocol):
    """Others who may come along in a transaction."""

    fate: Fate

    def enter(self) -> None:
        """The lane is the caller's now, and nothing has begun; whatever this raises keeps it from beginning."""

    def come_along(self, cursor: apsw.Cursor) -> None:
        """Do the work of whoever waits, within the open transaction."""


class NotYet(Exception):
    """Another thread holds the lane's lock, or another process that of the store."""

    def __init__(self, *, by_thread: bool) -> None:
        super().__init__()
        self.by_thread = by_thread


def _transact(
    connection: apsw.Connection, cursor: apsw.Cursor, begin: str, work: Callable[[apsw.Connection], A],
    company: Company | None,
) -> A:  # fmt: skip
    # An interrupt of the one before may have come where nothing could undo it any more.
    if connection.in_transaction:
        rollback(connection)
    fate = Fate.UNDONE
    try:
        _begin(cursor, begin)
        answer = work(connection)
        if company is not None:
            company.come_along(cursor)
        fate = Fate.UNKNOWN
        commit(cursor)
        fate = Fate.KEPT
        return answer
    except FAULTS as wrong:
        rollback(connection)
        raise translated(wrong) from wrong
    except BaseException as wrong:
        if connection.in_transaction or isinstance(wrong, Unavailable):
            fate = Fate.UNDONE
        rollback(connection)
        raise
    finally:
        if company is not None:
            company.fate = fate


def patience_of(patience_ms: int | None) -> float:
    """Seconds to wait for a busy store."""
    return (PATIENCE_MS if patience_ms is None else max(1, patience_ms)) / 1_000


def begin_patiently(cursor: apsw.Cursor, begin: str) -> None:
    """Open a transaction, waiting for whoever holds the lock. Raises `Unavailable` when that does not end."""
    until = time.monotonic() + PATIENCE_MS / 1_000
    pause_s = PAUSE_S_MIN
    while True:
        try:
            _begin(cursor, begin)
        except NotYet:
            if time.monotonic() >= until:
                raise busy(PATIENCE_MS / 1_000, cursor.connection) from None
        except apsw.Error as wrong:
            raise translated(wrong) from wrong
        else:
            return
        pause_s = pause(pause_s)


def pause(pause_s: float) -> float:
    """Wait a little; answers how long to wait the next time.

    Jittered, so that waiters do not march in step; SQLite's own timeout starves some of them.
    """
    time.sleep(random.uniform(0.3, 1) * pause_s)
    return min(PAUSE_S_MAX, pause_s * 1.5)


def _begin(cursor: apsw.Cursor, begin: str) -> None:
    try:
        cursor.execute(begin)
    except (apsw.BusyError, apsw.LockedError):
        raise NotYet(by_thread=False) from None


def commit(cursor: apsw.Cursor) -> None:
    """Make it durable. Raises `OutcomeUnknown` when the engine does not say whether it is."""
    try:
        cursor.execute("COMMIT")
    except apsw.Error as wrong:
        connection = cursor.connection
        undone = connection.in_transaction
        rollback(connection)
        if undone or isinstance(wrong, (apsw.FullError, apsw.BusyError)):
            raise translated(wrong) from wrong
        raise unknown_outcome(f"the store answered the commit with an error ({wrong})") from wrong


def unknown_outcome(why: str) -> OutcomeUnknown:
    """The engine did not say whether it was kept."""
    return OutcomeUnknown(
        f"{why}; it may or may not have been kept. Look, or repeat the same request", code="RELET-COMMIT"
    )


def rollback(connection: apsw.Connection) -> None:
    """Undo an open transaction, if there is one."""
    # After a full disk or an I/O error SQLite has rolled back by itself, and a second one would be an error.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def busy(patience_s: float, waiting: apsw.Connection | None = None) -> Unavailable:
    """Somebody else kept the write lock for too long; nothing was claimed, nothing was written.

    Whoever waited for so long that it is worth a look is told who has the lock.
    """
    writers: list[tuple[int, str]] = []
    who, way_out = "another process", "look for a program that holds one open on this file"
    if waiting is not None and waiting.filename and patience_s >= NAMED_FROM_S:
        from relet.store.sqlite.openers import named, who_writes

        if writers := who_writes(Path(waiting.filename)):
            who, way_out = named(writers), "end that transaction, or its program"
    return Unavailable(
        f"the store stayed locked by {who}, in a transaction, for {patience_s:g} s; nothing was written, try again. "
        f"If it lasts, {way_out}",
        code="RELET-BUSY", pids=[pid for pid, _ in writers],
    )  # fmt: skip


def nested() -> Unavailable:
    """A signal handler interrupted this very thread within a transaction, and asks for one of its own."""
    return Unavailable(
        "this thread is within a transaction of the store already, which an interrupt must not end; nothing was "
        "written, call again outside of the signal handler",
        code="RELET-BUSY",
    )


def forked() -> Unavailable:
    """This process is a copy of one that was in the middle of a transaction."""
    return Unavailable(
        "this process was forked while another thread was within a transaction that did not end in time, so the "
        "engine's locks cannot be trusted here; nothing was written. Start the process by spawn or exec, or fork it "
        "while no other thread uses the store",
        code="RELET-FORKED",
    )


def translated(wrong: apsw.Error | UnicodeDecodeError) -> Error:
    """An engine's error as one of ours; in every case the transaction is undone."""
    if isinstance(wrong, UnicodeDecodeError):
        # Met while rows are fetched, before anybody knows which one it is of.
        return Unavailable(
            "a row holds text that is no UTF-8: it is damaged, or was written by hand; nothing was done. Restore a "
            "backup, or mend the row",
            code=DAMAGED,
        )
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
                code=DAMAGED, **facts,
            )  # fmt: skip
        case _:
            return Unavailable(f"the store's engine failed ({wrong}); nothing was written", code="RELET-IO", **facts)
