"""A user's own transaction on a store's database: bounded in time, whatever its program does."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus

from relet.core.errors import Error, Invalid, OutcomeUnknown, Refused
from relet.core.operation import operation_of
from relet.store.own import too_long
from relet.store.postgres.connect import connect
from relet.store.postgres.engine import Answered, PostgresStore
from relet.store.postgres.faults import translated, unreachable
from relet.store.postgres.feed import write_refusals, write_within
from relet.store.postgres.given import Given, check_kind, check_open, lent, turn_on
from relet.store.postgres.guarded import guarded
from relet.store.postgres.line import Line
from relet.store.postgres.runner import NotAtOnce, Outage
from relet.store.postgres.texts import in_dialect
from relet.store.postgres.transact import Undone, check_end, fallen
from relet.store.postgres.tries import OUTAGES_MAX, PATIENCE_MS, unsettled
from relet.store.runner import Refusal

CAP: Final = (
    "SELECT set_config('statement_timeout', $1, true), "
    "set_config('idle_in_transaction_session_timeout', $1, true), set_config('synchronous_commit', 'on', true), "
    "CASE WHEN $2::name = ANY (current_schemas(false)) THEN set_config('search_path', coalesce(("
    "SELECT string_agg(quote_ident(u.named), ', ' ORDER BY u.n) "
    "FROM unnest(current_schemas(false)) WITH ORDINALITY u (named, n) WHERE u.named <> $2::name), ''), true) END, "
    "pg_backend_pid(), txid_current()"
)
"""Names without a schema mean none of relet's tables, be it that the role, and so "$user", is called like it."""
END: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid = $1::integer AND backend_xid::text::bigint = $2::bigint & 4294967295"
)
"""Of this transaction alone: a pooler may have lent its session to somebody else by now."""
END_S, END_AGAIN_S = 1.0, 0.1
"""How long the server may take for it, and when to ask again."""


class PostgresOwn:
    """One open transaction of the user's."""

    def __init__(self, store: PostgresStore, tenant: str, connection: Line, seconds: float) -> None:
        self.connection = connection
        self._store, self._tenant, self.seconds = store, tenant, seconds
        self.until = time.monotonic() + seconds
        self.refusals: list[tuple[str, Refusal]] = []
        """What was refused inside of it, to be written down once it has ended."""
        self.begun = self.over = self.committing = False
        self._has_ended = threading.Event()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def begin(self) -> None:
        """Watch the time from here on; the server does as well, for a program that is stopped."""
        cap = str(max(1, int(self.seconds * 1_000)))
        row = lent(self.connection).execute(CAP, [cap, self._store.schema]).fetchone()
        assert row is not None, "settings are answered"
        *_, self._pid, self._number = row
        self.begun = True
        self.until = time.monotonic() + self.seconds  # a server that is slow to begin it is none of the user's doing
        self._timer.start()

    def call(self, ask: Any) -> Any:
        """The answer to a request inside of the transaction."""
        self.go_on()
        self.check_open()
        return call_within(self._store, self.connection, ask, self._tenant, self)

    def go_on(self) -> None:
        """Raises `Refused` when there is no time left."""
        if self.is_over:
            self.over = True
            raise _too_long(self.seconds)

    @property
    def is_over(self) -> bool:
        """Is there no time left; also for a program that was stopped, whose timer is only just to find out."""
        return self.over or time.monotonic() > self.until

    @property
    def is_silent(self) -> bool:
        """Was there time left when the server was asked what it did not answer: it is away, and nobody was slow."""
        return (since := self.connection.silent_since) is not None and since <= self.until

    def check_whole(self) -> None:
        """Raises `OutcomeUnknown` when it is another transaction than the one that began."""
        self.check_open()
        row = lent(self.connection).execute("SELECT txid_current()").fetchone()
        if row != (self._number,):
            raise _torn()

    def check_open(self) -> None:
        """As above, by what is known here."""
        if self.connection.info.transaction_status is TransactionStatus.IDLE:
            raise _torn()

    def fallen(self, wrong: psycopg.Error) -> Exception:
        """What is known of the transaction that an error ended."""
        if not self.begun or (self.is_silent and not self.committing):
            return translated(wrong, self._store.place)
        if self.is_over and not self.committing:
            return _too_long(self.seconds)
        if not self.committing:
            return wrong  # of a statement of the user's
        known = fallen(self.connection, wrong, committing=True)
        return translated(known.wrong, self._store.place) if isinstance(known, Undone) else known

    def leave(self) -> None:
        """The transaction has ended, one way or the other."""
        self._has_ended.set()
        self._timer.cancel()

    def _end(self) -> None:
        """Time is over: have the server end the session, and so give its locks back.

        By a connection of its own: those of the pool may all be waiting for these very locks.
        """
        self.over = True
        while not self._has_ended.is_set():
            with (
                contextlib.suppress(Error, psycopg.Error),
                connect(self._store.conninfo, self._store.place) as connection,
            ):
                connection.expect_answers(END_S)
                connection.execute(END, [self._pid, self._number])
                break
            self._has_ended.wait(END_AGAIN_S)


@contextmanager
def own_transaction(store: PostgresStore, tenant: str, seconds: float) -> Iterator[PostgresOwn]:
    """A transaction for a block. Raises `Refused` when it took longer, with all of it undone."""
    with _connected(store) as connection:
        connection.expect_answers(seconds)
        own = PostgresOwn(store, tenant, connection, seconds)
        try:
            # Within this block the driver lets nobody else commit or roll back.
            with connection.transaction():
                own.begin()
                try:
                    yield own
                except psycopg.Error:
                    raise
                except BaseException:
                    if not connection.closed:
                        own.check_open()
                    raise
                own.go_on()
                own.check_whole()
                connection.notices.clear()
                own.committing = True
            check_end("COMMIT", connection.notices)
        except psycopg.Error as wrong:
            if (known := own.fallen(wrong)) is wrong:
                raise
            raise known from wrong
        finally:
            own.leave()
            for verb, refusal in own.refusals:
                write_refusals(store, verb, [refusal])
    store.herald.tell()


@contextmanager
def _connected(store: PostgresStore) -> Iterator[Line]:
    plain, named = guarded(store.schema)
    try:
        connection = Line.connect(store.conninfo, autocommit=True, prepare_threshold=None, cursor_factory=plain)
    except psycopg.Error as wrong:
        raise unreachable(wrong, store.place) from wrong
    connection.server_cursor_factory = named
    try:
        yield connection
    finally:
        connection.close()


def call_within(store: PostgresStore, connection: Any, ask: Any, tenant: str, own: PostgresOwn | None = None) -> Any:
    """The answer to a request inside the caller's own open transaction, which the caller commits."""
    given = check_kind(connection)
    with turn_on(given):
        check_open(given)
        answer = _called(store, given, ask, tenant, own)
    if isinstance(answer, Error):
        raise answer
    return answer


def _called(store: PostgresStore, connection: Given, ask: Any, tenant: str, own: PostgresOwn | None) -> Any:
    cursor = partial(lent, connection)
    try:
        _check_store(store, cursor)
        answer, refusals, _ = _answered(store, connection, cursor, ask, tenant)
        operation = operation_of(type(ask))
        if refusals and own is None:
            # Kept if the caller commits.
            wall_ms = store.clock.instants(0, 0).wall_ms if store.clock.steered else None
            write_within(cursor, store.dialect, operation.name, refusals, wall_ms)
        elif own is not None:
            own.refusals.extend((operation.name, refusal) for refusal in refusals)
    except psycopg.Error as wrong:
        if own is not None and own.is_over and not own.is_silent:
            raise _too_long(own.seconds) from wrong
        raise translated(wrong, store.place) from wrong
    return answer


def _answered(store: PostgresStore, connection: Given, cursor: Any, ask: Any, tenant: str) -> Answered:
    operation = operation_of(type(ask))
    for _ in range(OUTAGES_MAX):
        try:
            # A savepoint: what fails half-way is undone, and what the caller wrote before is not.
            with connection.transaction():
                return store.work(
                    cursor, operation, ask, tenant, durable=True, terms={"commit": "on", "lock_timeout": None}
                )
        except Outage:
            store.settle(PATIENCE_MS / 1_000)
        except NotAtOnce:
            operation = operation._replace(at_once=False)
    raise unsettled(store.place)


def _check_store(store: PostgresStore, cursor: Any) -> None:
    text = in_dialect("SELECT to_regclass('relet.meta') IS NOT NULL", store.dialect)
    if cursor().execute(text).fetchone()[0]:
        found = cursor().execute(in_dialect("SELECT store_id FROM relet.meta", store.dialect)).fetchone()
        if found is not None and found[0] != store.store_id:
            store.learn(PATIENCE_MS / 1_000)
        if found is not None and found[0] == store.store_id:
            return
    raise Invalid(f"tx: is a transaction on another database than {store.place}", field="tx")


def _too_long(seconds: float) -> Refused:
    return too_long(seconds, "others")


def _torn() -> OutcomeUnknown:
    return OutcomeUnknown(
        "your transaction was ended within its block, by other means than relet sees: what it had written until then "
        "may have been kept, and what came after stands by itself. Leave its end to relet, which commits where the "
        "block ends, and rolls back what raises",
        code="RELET-TRANSACTION-ENDED",
    )
