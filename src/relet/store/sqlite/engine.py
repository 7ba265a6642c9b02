"""The SQLite engine: requests in, each one short transaction, answers out after COMMIT."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import apsw

from relet.core.drive import drive
from relet.core.errors import Error, Invalid
from relet.core.operation import Operation, operation_of
from relet.store.at_once import AT_ONCE, Rule
from relet.store.runner import Refusal
from relet.store.sql import SqlTx
from relet.store.sqlite import place
from relet.store.sqlite.bonds import Bonds
from relet.store.sqlite.clock import StoreClock, SystemClock
from relet.store.sqlite.connect import WAL_PAGES_OF_BEATS, check_file, identify, open_connection
from relet.store.sqlite.feed import write_refusals, write_within
from relet.store.sqlite.gate import gate_beside
from relet.store.sqlite.group import SharedLane
from relet.store.sqlite.lane import Lane, NotYet, translated
from relet.store.sqlite.runner import BEGIN_TO_READ, BEGIN_TO_WRITE, READ_META, LapseSeen, SqliteRunner
from relet.store.sqlite.watch import Watch, open_watch

if TYPE_CHECKING:
    from relet.core.upkeep import BackedUp, Verified, VerifiedLog

FORK_WAIT_S: Final = 2.0
"""How long a fork waits for transactions of other threads; they take milliseconds where the disk is well."""


TOLD_FROM_S: Final = 0.05
"""A wait that is shorter than this is not worth the system's help."""
TOLD_MAX: Final = 8
"""How many threads of a store the system tells of commits; a user has some hundred such descriptors in all."""

A = TypeVar("A")


class Guarded(Protocol):
    """A transaction in which relet's tables are out of reach."""

    refusals: list[tuple[str, Refusal]]

    def lifted(self) -> AbstractContextManager[None]:
        """A block in which they are within reach, and which the clock does not end."""


class SqliteStore:
    """A store in one file, or in memory. Safe for all threads; a forked child opens connections of its own."""

    def __init__(self, url: str, *, clock: StoreClock | None = None, state: Path | None = None) -> None:
        self.path = place.path_of(url)
        clock = clock or SystemClock()
        if self.path is not None:
            place.check_link(url, self.path)
            check_file(self.path)
        else:
            place.check_engine()
        # Nobody uses the connection of a lane without its lock.
        self._write = Lane("memory", lambda: open_connection(None, synchronous="full", mutex=False))
        self._beat = self._read = self._glance = self._unlink = self._write
        if self.path is not None:
            file = self.path
            self._write = SharedLane(
                "write", lambda: open_connection(file, synchronous="full", mutex=False), READ_META, gate_beside(file)
            )
            self._beat = Lane(
                "beat",
                lambda: open_connection(file, synchronous="normal", wal_pages=WAL_PAGES_OF_BEATS, mutex=False),
                gate_beside(file),
            )
            self._unlink = Lane(
                "unlink", lambda: open_connection(file, synchronous="full", linked=False, mutex=False)
            )
            self._read, self._glance = (
                Lane(name, lambda: open_connection(file, synchronous="normal", mutex=False))
                for name in ("read", "glance")
            )
        self._looks, self._told = threading.local(), threading.Semaphore(TOLD_MAX)
        self.owns: dict[int, Guarded] = {}
        """Open transactions of the user's that relet began, by their connections."""
        try:
            self.identity = identify(self._write, self.path, clock, state)
        except BaseException:
            self._write.disconnect()
            raise
        # Looked at before each request, by the name that was given: a link may be turned to another file.
        self._name = None if self.path is None else str(place.named_by(url))
        self._inode = place.inode_of(self.path)
        self.identity.bonds = Bonds(self.path, clock.boot.boot_id)
        _OPEN.add(self)

    @property
    def place(self) -> str:
        """The file, in full."""
        return "sqlite:// (in memory)" if self.path is None else str(self.path)

    def call(self, ask: Any, tenant: str, patience_ms: int | None = None) -> Any:
        """The answer to a request of a tenant. A refusal is raised, after what it observed was committed."""
        return self.answer(operation_of(type(ask)), ask, tenant, patience_ms)

    def answer(self, operation: Operation, ask: Any, tenant: str, patience_ms: int | None = None) -> Any:
        """As `call`, for operations of the engine's own too."""
        if operation.durable or not operation.writes:
            lane = (self._unlink if operation.unlinks else self._write) if operation.writes else self._read
            answer, refusals = self._run(lane, operation, ask, tenant, patience_ms)
        else:
            answer, refusals = self._run_lightly(operation, ask, tenant, patience_ms)
        if refusals:
            self.note_refusals(operation.name, refusals)
        if isinstance(answer, Error):
            raise answer
        return answer

    def answer_at_once(self, ask: Any, tenant: str) -> Any | None:
        """As `call` for what only reads; None where another thread looks so just now, and it was not waited for."""
        operation = operation_of(type(ask))
        assert not operation.writes, "writers wait for each other"
        self.check_file()
        try:
            work = self._work(self._glance, operation, ask, tenant)
            answer, _, _ = self._glance.attempt(BEGIN_TO_READ, work, 0.0, 0.0)
        except NotYet:
            return None
        if isinstance(answer, Error):
            raise answer
        return answer

    def write(self, work: Callable[[apsw.Connection], A]) -> A:
        """What a durable transaction of the engine's own answers."""
        return self._write.transact("BEGIN IMMEDIATE", work)

    def note_refusals(self, verb: str, refusals: list[Refusal]) -> None:
        """Write refused writes down, apart from what refused them."""
        write_refusals(self._beat, verb, refusals, self.identity.clock.wall_ms())

    def call_within(self, connection: Any, ask: Any, tenant: str) -> Any:
        """The answer to a request inside the caller's own open transaction, which the caller commits."""
        if not _is_open_transaction(connection):
            raise Invalid(
                "tx: is not an apsw connection with an open transaction; begin one with BEGIN IMMEDIATE on "
                "apsw.Connection of this store's file",
                field="tx",
            )
        if self.path is None or not _is_file(connection, self.path):
            raise Invalid(f"tx: is a transaction on another file than {self.place}", field="tx")
        own = self.owns.get(id(connection))
        try:
            # A transaction of ours is guarded, and ends by the clock; neither comes between the statements of a rule.
            # The connection is a savepoint: what fails half-way is undone, and what the caller wrote before is not.
            with nullcontext() if own is None else own.lifted(), connection:
                cursor = connection.cursor()
                meta = cursor.execute(READ_META).fetchall()[0]
                tx = SqlTx(SqliteRunner(cursor, self.identity, durable=True, meta=meta), tenant)
                operation = operation_of(type(ask))
                answer = drive(operation.rule(tx, ask))
                drive(tx.settle())
                if own is None and tx.refusals:
                    # Kept if the caller commits: it holds the one write lock, so nobody else can write them now.
                    write_within(connection, operation.name, tx.refusals, self.identity.clock.wall_ms())
                elif own is not None:
                    own.refusals.extend((operation.name, refusal) for refusal in tx.refusals)
        except apsw.Error as wrong:
            raise translated(wrong) from wrong
        if isinstance(answer, Error):
            raise answer
        return answer

    def check_file(self) -> None:
        """Refuse to go on once the file was replaced or removed under this client: nobody else sees what it has."""
        if place.inode_of(self._name) != self._inode:
            raise place.replaced(self._name)

    def version(self) -> int:
        """A number that changes when another connection has committed."""
        return self._read.version()

    def wait_for_change(self, seconds: float) -> None:
        """Return when another connection has committed since this thread's last look, at the latest in `seconds`."""
        looks = self._looks
        if not hasattr(looks, "watch"):
            looks.watch = Watch(self._read.version)
        if seconds < TOLD_FROM_S or not self._told.acquire(blocking=False):
            looks.watch.wait(seconds)
            return
        try:
            with closing(self.watch()) as told:
                told.seen = looks.watch.seen
                told.wait(seconds)
                looks.watch.seen = told.seen
        finally:
            self._told.release()

    def watch(self) -> Watch:
        """A waiter of its own for a thread; what was committed before its first look counts as a change."""
        return open_watch(self._read.version, self.path)

    def verify(self, exists: Callable[[str], bool] | None) -> Verified:
        """What does not hold of the store, as it stands now; others go on meanwhile."""
        from relet.store.sqlite.verify import verify, verify_file

        if self.path is None:
            with self._write.lock:
                return verify(self._write.connection(), self.place, exists)
        return verify_file(self.path, exists)

    def verify_log(self) -> VerifiedLog:
        """What does not hold of the audit log, as it stands now."""
        from relet.store.sqlite.verify import verify_log, verify_log_of

        if self.path is None:
            with self._write.lock:
                return verify_log(self._write.connection(), self.place)
        return verify_log_of(self.path)

    def backup(self, to: str, exists: Callable[[str], bool] | None) -> BackedUp:
        """A verified copy of the store, as it stands now; others go on meanwhile."""
        from relet.store.sqlite.backup import backup

        if self.path is None:
            with self._write.lock:
                return backup(self._write.connection(), self.place, to, exists)
        # A connection of its own: a large store takes its time.
        lane = Lane("backup", lambda: open_connection(self.path, synchronous="normal"))
        try:
            with lane.lock:
                return backup(lane.connection(), self.place, to, exists)
        finally:
            lane.disconnect()

    def close(self) -> None:
        """Close the connections; later calls raise `Unavailable`."""
        for lane in self._lanes():
            with lane.lock:
                lane.disconnect()
                lane.closed = True
        if self.identity.opened is not None:
            self.identity.opened.close()
            self.identity.opened = None
        self.identity.bonds.close()
        _OPEN.discard(self)

    def _run_lightly(
        self, operation: Operation, ask: Any, tenant: str, patience_ms: int | None
    ) -> tuple[Any, list[Refusal]]:
        """Without fsync; but a lapse seen on the way is written where it is durable, before it is told."""
        try:
            return self._run(self._beat, operation, ask, tenant, patience_ms)
        except LapseSeen:
            return self._run(self._write, operation, ask, tenant, patience_ms)

    def _run(
        self, lane: Lane, operation: Operation, ask: Any, tenant: str, patience_ms: int | None
    ) -> tuple[Any, list[Refusal]]:
        self.check_file()
        work = self._work(lane, operation, ask, tenant)
        if isinstance(lane, SharedLane):
            answer, refusals, burnt = lane.share(work, patience_ms)
        else:
            begin = BEGIN_TO_WRITE if operation.writes else BEGIN_TO_READ
            answer, refusals, burnt = lane.transact(begin, work, patience_ms)
        if burnt and self.identity.opened is not None:
            self.identity.opened.burnt()
        return answer, refusals

    def _work(
        self, lane: Lane, operation: Operation, ask: Any, tenant: str
    ) -> Callable[[apsw.Connection], tuple[Any, list[Refusal], bool]]:
        """What an open transaction of a lane does for a request: its answer, refusals, and were numbers burnt."""
        rule: Rule = AT_ONCE.get(type(ask), operation.rule)

        def work(_connection: apsw.Connection) -> tuple[Any, list[Refusal], bool]:
            cursor = lane.cursor()
            meta = cursor.fetchall()[0] if operation.writes else None
            runner = SqliteRunner(cursor, self.identity, durable=lane in (self._write, self._unlink), meta=meta)
            tx = SqlTx(runner, tenant)
            answer = drive(rule(tx, ask))
            if tx.loose:
                drive(tx.settle())
            return answer, tx.refusals, runner.burnt

        return work

    def _lanes(self) -> list[Lane]:
        if self.path is None:
            return [self._write]
        return [self._write, self._beat, self._read, self._glance, self._unlink]

    def before_fork(self) -> list[Lane]:
        """Close connections, so that the child inherits no state of the engine; answers the lanes now locked."""
        until = time.monotonic() + FORK_WAIT_S
        held = [lane for lane in self._lanes() if lane.lock.acquire(timeout=max(0.0, until - time.monotonic()))]
        if self.path is not None:
            for lane in held:
                lane.disconnect()
        return held

    def after_fork_in_child(self) -> None:
        """Fresh locks, and connections of its own."""
        for lane in self._lanes():
            if self.path is not None:
                lane.abandon()
            else:
                lane.lock = threading.RLock()
        self._looks, self._told = threading.local(), threading.Semaphore(TOLD_MAX)


def _is_open_transaction(connection: Any) -> bool:
    try:
        return isinstance(connection, apsw.Connection) and connection.in_transaction
    except apsw.ConnectionClosedError:
        return False


def _is_file(connection: apsw.Connection, path: Path) -> bool:
    try:
        return os.path.samefile(connection.filename, path)
    except OSError:
        return False  # in memory, or deleted


_OPEN: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
_HELD: dict[int, list[Lane]] = {}
"""Lanes locked for a fork, by the thread that forks: two may do so at once, and each lets go of its own."""


def _before_fork() -> None:
    held = _HELD.setdefault(threading.get_ident(), [])
    for store in list(_OPEN):
        held.extend(store.before_fork())


def _after_fork_in_parent() -> None:
    for lane in _HELD.pop(threading.get_ident(), []):
        lane.lock.release()


def _after_fork_in_child() -> None:
    _HELD.clear()
    for store in list(_OPEN):
        store.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
