"""A user's own transaction on a store's database: bounded in time, whatever its program does."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8Dumper

from relet.core.errors import Error, Invalid, Unavailable
from relet.core.operation import operation_of
from relet.store.own import too_long
from relet.store.postgres.engine import OUTAGES_MAX, PATIENCE_MS, Answered, PostgresStore, unsettled
from relet.store.postgres.faults import translated, unknown_outcome
from relet.store.postgres.feed import write_refusals, write_within
from relet.store.postgres.line import Line
from relet.store.postgres.runner import NotAtOnce, Outage
from relet.store.postgres.texts import in_dialect
from relet.store.runner import Refusal

_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_ENDS: Final = re.compile(
    r"(^|;)\s*(commit|end|rollback(?!\s+to)|abort|begin|start|prepare\s+transaction)\b", re.IGNORECASE
)
CAP: Final = (
    "SELECT set_config('statement_timeout', %s, true), "
    "set_config('idle_in_transaction_session_timeout', %s, true), set_config('synchronous_commit', 'on', true)"
)


def guarded(schema: str) -> type[psycopg.Cursor[Any]]:
    """Cursors that keep a user's statements from relet's tables by mistake; no wall against somebody who means to."""
    named = re.compile(rf"(?<![\w\"]){schema}\s*\.|\"{schema}\"\s*\.|\bsearch_path\b", re.IGNORECASE)

    class Guarded(psycopg.Cursor[Any]):
        def execute(self, query: Any, *args: Any, **named_args: Any) -> Any:
            self._check(query)
            return super().execute(query, *args, **named_args)

        def executemany(self, query: Any, *args: Any, **named_args: Any) -> None:
            self._check(query)
            super().executemany(query, *args, **named_args)

        def _check(self, query: Any) -> None:
            text = query if isinstance(query, str) else query.decode() if isinstance(query, bytes) else ""
            text = _COMMENT.sub(" ", text)
            if named.search(text) or _ENDS.search(text):
                raise _out_of_reach(schema)

    return Guarded


class PostgresOwn:
    """One open transaction of the user's."""

    def __init__(
        self, store: PostgresStore, tenant: str, connection: psycopg.Connection[Any], seconds: float
    ) -> None:
        self.connection = connection
        self._store, self._tenant, self.seconds = store, tenant, seconds
        self.until = time.monotonic() + seconds
        self.refusals: list[tuple[str, Refusal]] = []
        """What was refused inside of it, to be written down once it has ended."""
        self.over = False
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def begin(self) -> None:
        """Watch the time from here on; the server does as well, for a program that is stopped."""
        cap = str(max(1, int(self.seconds * 1_000)))
        row = self.connection.execute(CAP + ", pg_backend_pid()", [cap, cap]).fetchone()
        assert row is not None, "settings are answered"
        self._pid = row[-1]
        self._timer.start()

    def call(self, ask: Any) -> Any:
        """The answer to a request inside of the transaction."""
        self.go_on()
        return call_within(self._store, self.connection, ask, self._tenant, self)

    def go_on(self) -> None:
        """Raises `Unavailable` when there is no time left."""
        if self.over or time.monotonic() > self.until:
            self.over = True
            raise _too_long(self.seconds)

    def leave(self) -> None:
        """The transaction has ended, one way or the other."""
        self._timer.cancel()

    def _end(self) -> None:
        """Time is over: have the server end the session, and so give its locks back."""
        self.over = True
        with contextlib.suppress(Error, psycopg.Error), self._store.calls.borrowed(1.0) as connection:
            connection.execute("SELECT pg_terminate_backend($1::integer)", [self._pid])


@contextmanager
def own_transaction(store: PostgresStore, tenant: str, seconds: float) -> Iterator[PostgresOwn]:
    """A transaction for a block. Raises `Unavailable` when it took longer, with all of it undone."""
    own: PostgresOwn | None = None
    committing = False
    try:
        with _connected(store) as connection:
            connection.expect_answers(seconds)
            own = PostgresOwn(store, tenant, connection, seconds)
            # Within this block the driver lets nobody else commit or roll back.
            with connection.transaction():
                own.begin()
                yield own
                own.go_on()
                committing = True
    except psycopg.Error as wrong:
        if own is not None and own.over and not committing:
            raise _too_long(seconds) from wrong
        if committing and wrong.sqlstate is None:
            raise unknown_outcome(f"the connection ended within the commit ({type(wrong).__name__})") from wrong
        if own is None or committing:
            raise translated(wrong, store.place) from wrong
        raise
    finally:
        if own is not None:
            own.leave()
            for verb, refusal in own.refusals:
                write_refusals(store, verb, [refusal])
    store.herald.tell()


@contextmanager
def _connected(store: PostgresStore) -> Iterator[Line]:
    connection = Line.connect(
        store.conninfo, autocommit=True, prepare_threshold=None, cursor_factory=guarded(store.schema)
    )
    try:
        yield connection
    finally:
        connection.close()


def call_within(store: PostgresStore, connection: Any, ask: Any, tenant: str, own: PostgresOwn | None = None) -> Any:
    """The answer to a request inside the caller's own open transaction, which the caller commits."""
    if not isinstance(connection, psycopg.Connection) or (
        connection.info.transaction_status is not TransactionStatus.INTRANS
    ):
        raise Invalid(
            "tx: is not a psycopg connection with an open transaction; begin one, as in "
            "with psycopg.connect(...) as connection, connection.transaction(): ...",
            field="tx",
        )

    def cursor() -> psycopg.Cursor[Any]:
        made: psycopg.Cursor[Any] = psycopg.RawCursor(connection, row_factory=tuple_row)
        made.adapters.register_dumper(int, Int8Dumper)
        return made

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
        if own is not None and own.over:
            raise _too_long(own.seconds) from wrong
        raise translated(wrong, store.place) from wrong
    if isinstance(answer, Error):
        raise answer
    return answer


def _answered(
    store: PostgresStore, connection: psycopg.Connection[Any], cursor: Any, ask: Any, tenant: str
) -> Answered:
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


def _out_of_reach(schema: str) -> Invalid:
    return Invalid(
        f"transaction: a statement in it is not allowed here, and all of it was rolled back: it names one of relet's "
        f"tables (those of the schema {schema}), sets the search_path, or ends or opens a transaction. Use tables of "
        "another schema; relet commits at the end of the block",
        field="transaction",
    )


def _too_long(seconds: float) -> Unavailable:
    return too_long(seconds, "others")
