"""copy, the end that arrives: rows of another engine's store, where nobody may use them before all are there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import errors as pg

from relet.core.errors import Conflict, Error
from relet.core.upkeep import Verified
from relet.store.copying import TABLES, Leaving, Row, Told
from relet.store.migrate import CLOSED
from relet.store.postgres.address import address_of, is_same
from relet.store.postgres.clock import ServerClock, SteeredClock, Steering, StoreClock
from relet.store.postgres.connect import Capabilities, Connection, connect, make_tables, met
from relet.store.postgres.faults import translated
from relet.store.postgres.place import conninfo_of, located, place_of, quoted
from relet.store.postgres.schema import MIN_READER, MIN_WRITER, check_version
from relet.store.postgres.texts import PACKAGE, Dialect, in_dialect, numbered, statement
from relet.store.postgres.verify import verify
from relet.store.statements import load

COPY_SQL: Final = load(PACKAGE, "copy_in.sql", [
    *TABLES, "read_state", "has_work", "count_clients", "set_state", "make_gone", "put_gone",
    "drop_gone", "set_identity", "set_epoch", "read_now", "empty_tables", "work_after", "count_access", "next_number",
    "know_sizes",
])  # fmt: skip
LOCK_MS: Final = 10_000
TOLD_ROWS: Final = 10_000
"""How often it is said how far a table has come."""


class State(NamedTuple):
    """Of the store that is there."""

    store_id: str
    epoch: int
    min_reader: int
    version: int

    @property
    def is_shut(self) -> bool:
        """May nobody use it."""
        return self.min_reader >= CLOSED


@contextmanager
def arriving(url: str, schema: str | None, *, clock: Steering | None = None) -> Iterator[Arrival]:
    """A place in a database. Raises `Unavailable`, `Forbidden` or `Invalid` where it cannot be reached."""
    url, schema = located(url, schema)
    conninfo, place = conninfo_of(url), place_of(url, schema)
    try:
        with connect(conninfo, place) as connection:
            can, dialect = met(connection, place, schema, steered=clock is not None)
            yield Arrival(connection, conninfo, url, dialect, can, clock)
    except psycopg.Error as wrong:
        raise translated(wrong, place) from wrong


class Arrival:
    """One schema, in the hands of one process: no other one can have the store that it copies."""

    def __init__(
        self, connection: Connection, conninfo: str, url: str, dialect: Dialect, can: Capabilities,
        clock: Steering | None,
    ) -> None:  # fmt: skip
        self._connection, self._can, self._url = connection, can, url
        self._clock: StoreClock = ServerClock() if clock is None else SteeredClock(clock)
        self.conninfo, self.place, self.dialect = conninfo, address_of(url, dialect.schema), dialect

    def is_there(self) -> bool:
        return self._state() is not None

    def is_of(self, store_id: str) -> bool:
        return (state := self._state()) is not None and state.store_id == store_id

    def is_shut(self) -> bool:
        return (state := self._state()) is not None and state.is_shut

    def is_named(self, place: str) -> bool:
        return is_same(place, self._url, self.dialect.schema)

    def epoch(self) -> int:
        return 0 if (state := self._state()) is None else state.epoch

    def check(self, source: Leaving) -> None:
        if (state := self._state()) is not None:
            # First without a lock: whoever works there is not kept waiting, only to be left as they are.
            self._refuse_others(state, source, is_new=False)
        try:
            # What a role may do, and a standby, and a pooler, is told by none but the server, when it is done.
            with self._connection.transaction(force_rollback=True):
                self.shut_for(source)
        except psycopg.Error as wrong:
            raise translated(wrong, self.place) from wrong

    def shut_for(self, source: Leaving) -> None:
        is_new = not self.is_there()
        if is_new:
            make_tables(self._connection, self.place, self.dialect, self._can)
        with self._durable():
            statement("lock_all_out", self.dialect).row(self._connection, {})
            state = self._state()
            assert state is not None, "it was there a moment ago"
            self._refuse_others(state, source, is_new=is_new)
            if not (state.is_shut and state.store_id == source.store_id):
                self._one("set_identity", store_id=source.store_id, secret_key=source.secret_key.hex())
            self._one("set_state", reader=CLOSED, writer=CLOSED)
            self._one("drop_gone")

    def _refuse_others(self, state: State, source: Leaving, *, is_new: bool) -> None:
        check_version(self.place, state.version, 1 if state.is_shut else state.min_reader)
        if state.is_shut and state.store_id == source.store_id:
            return  # an earlier run of this very copy
        if state.is_shut:
            raise self._taken("another store is being copied there, and that was never finished")
        if state.store_id == source.store_id:
            raise self._taken("a copy of this very store is in use there")
        if self._one("has_work")[0]:
            raise self._taken("it holds the tasks or the settings of another store")
        if not is_new and (n := self._one("count_clients")[0]):
            raise Conflict(
                f"{self.place} is open in {n} sessions of relet, which know nothing of the key that comes with a "
                "copy; nothing was changed. End those programs, then repeat",
                code="RELET-IN-USE", sessions=n,
            )  # fmt: skip

    def _taken(self, why: str) -> Error:
        return Conflict(
            f"{self.place}: {why}; nothing was changed. Name another database, or remove what is there: DROP SCHEMA "
            f"{quoted(self.dialect.schema)} CASCADE",
            code="RELET-OTHER-STORE", place=self.place,
        )  # fmt: skip

    def fill(self, source: Leaving, epoch: int, told: Told) -> dict[str, int]:
        """In one transaction: cut at any point, it has not been."""
        with self._durable():
            self._one("empty_tables")
            ahead_ms, clock_ms, server = self._one("read_now")
            shift_ms = self._clock.instants(clock_ms, ahead_ms).now_ms - source.now_ms()
            rows = {table: self._copy(table, source, shift_ms, told) for table in TABLES}
            for table, last in source.numbers().items():
                self._one("next_number", named=f"{quoted(self.dialect.schema)}.{table}", last=last)
            self._one("set_epoch", epoch=epoch)
            # No outage lies between the last commit there and the first one here.
            statement("settle_run", self.dialect).row(self._connection, {"server": server})
            self._one("know_sizes")
        return rows

    def _copy(self, table: str, source: Leaving, shift_ms: int, told: Told) -> int:
        n = 0
        with self._connection.cursor().copy(in_dialect(COPY_SQL[table], self.dialect)) as copy:
            for n, row in enumerate(source.rows(table, shift_ms), 1):
                copy.write_row(row)
                if n % TOLD_ROWS == 0:
                    told(table, n)
        if n % TOLD_ROWS:
            told(table, n)
        return n

    def verified(self) -> Verified:
        return verify(self, None)

    def open(self) -> None:
        with self._durable():
            self._one("set_state", reader=MIN_READER, writer=MIN_WRITER)
            self._one("drop_gone")

    def shut(self, place: str) -> None:
        with self._durable():
            statement("lock_all_out", self.dialect).row(self._connection, {})
            self._one("set_state", reader=CLOSED, writer=CLOSED)
            ahead_ms, clock_ms, _ = self._one("read_now")
            # A role that may make no tables leaves no word; the store is shut all the same.
            with suppress(pg.InsufficientPrivilege), self._connection.transaction():
                self._one("make_gone")
                self._one("put_gone", place=place, wall_ms=self._clock.instants(clock_ms, ahead_ms).wall_ms)

    def has_worked(self, last_event: int, access: Row) -> bool:
        return bool(self._one("work_after", seq=last_event)[0]) or self._one("count_access") != access

    @contextmanager
    def _durable(self) -> Iterator[None]:
        """A transaction that is on disk when it ends, and that no setting of the server's cuts short."""
        with self._connection.transaction():
            for name, value in (
                ("synchronous_commit", "on"),
                ("lock_timeout", LOCK_MS),
                ("statement_timeout", 0),
                ("idle_in_transaction_session_timeout", 0),
            ):
                self._connection.execute(f"SET LOCAL {name} = {value}")
            yield

    def _state(self) -> State | None:
        try:
            # Of its own, so that a transaction around it goes on where there is no such table.
            with self._connection.transaction():
                row = self._one("read_state")
        except (pg.UndefinedTable, pg.InvalidSchemaName):
            return None
        return None if row is None else State(*row)

    def _one(self, name: str, **params: Any) -> Any:
        return numbered(COPY_SQL[name], self.dialect).row(self._connection, params)
