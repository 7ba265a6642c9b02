"""Open a database: find out what the server can do, make the tables where there are none, say which store it is."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import errors as pg

from relet.core.border import invalid, shown
from relet.core.errors import DAMAGED, Error, Forbidden, Invalid, Unavailable
from relet.store.postgres.adapters import OURS
from relet.store.postgres.clock import StoreClock
from relet.store.postgres.faults import told_by, translated, unreachable
from relet.store.postgres.line import Line, Synced
from relet.store.postgres.place import ENCODING, quoted
from relet.store.postgres.schema import MIN_READER, MIN_WRITER, SCHEMA, check_version, row_gone
from relet.store.postgres.texts import PACKAGE, Dialect, in_dialect, statement
from relet.store.postgres.upgrade_steps import fresh, steps
from relet.store.statements import folder_of, load

LEAST_VERSION: Final = 150_000
"""The oldest that the tests run on."""
PREPARED_MAX: Final = 300
OPEN_S: Final = 30.0
"""How long it may take to find out about a server, and to make the tables."""
LOCK_MS_MAX: Final = 5_000
"""Who waits longer for a row asks anew: the holder of its lock may be gone without a word."""
TRANSACTION_S: Final = 10
"""No transaction of ours that writes takes longer. Its process may have been stopped within it, or cut off: then the
server undoes it, and others have its rows."""
PEER_S: Final = 2
TUNING: Final = load(PACKAGE, "tuning.sql", [
    "renewals_stay_on_their_page", "tasks_are_cleaned_often", "few_rows_written_often", "a_run_ends_with_a_crash",
])  # fmt: skip
Connection = psycopg.Connection[tuple[Any, ...]]
WITHOUT: Final = "RELET_POSTGRES_WITHOUT"
"""Capabilities that are not to be used though the server has them."""
CAN_DO_WITHOUT: Final = ("listen", "prepare", "skip_locked", "run", "tuning")
OTHER_WORDS: Final = (pg.SyntaxError, pg.FeatureNotSupported, pg.InvalidParameterValue)
"""What a server answers to a statement, or a setting, that is none of its own."""


class Capabilities(NamedTuple):
    """What this server can do for us; probed, and each can be forbidden by `$RELET_POSTGRES_WITHOUT`."""

    skip_locked: bool
    listen: bool
    """Sessions are our own, so that they can be told of what others do."""
    prepare: bool
    """And so that they remember statements."""
    own_session: bool
    """And settings."""
    run: bool
    """It says when it was started and on which timeline it is."""
    tuning: bool
    """Tables have settings. Tried when they are made: a server that refuses it gets them without."""


class Identity(NamedTuple):
    """Which store this is, as it says of itself."""

    store_id: str
    secret_key: bytes
    epoch: int
    """In which it said so; with a later one may come another identity: that of a copy."""


class Opened(NamedTuple):
    """A store that was found, or made."""

    identity: Identity
    dialect: Dialect
    can: Capabilities
    version: int
    """Of the server."""


def connect(conninfo: str, place: str) -> Line:
    """One connection, without a transaction of its own. Raises `Unavailable`, `Forbidden` or `Invalid`."""
    try:
        connection = Line.connect(conninfo, autocommit=True, context=OURS, cursor_factory=psycopg.RawCursor)
    except psycopg.Error as wrong:
        raise unreachable(wrong, place) from wrong
    if (encoding := connection.info.parameter_status("server_encoding")) not in (ENCODING, None):
        connection.close()
        raise _other_encoding(place, str(encoding))
    connection.prepare_threshold = None
    return connection


def _other_encoding(place: str, encoding: str) -> Invalid:
    return Invalid(
        f"url: {place} is a database in {encoding}; relet keeps any text, in {ENCODING}. Nothing was changed. Make "
        f"one for it: CREATE DATABASE <its name> ENCODING '{ENCODING}' TEMPLATE template0",
        field="url", code="RELET-ENCODING", encoding=encoding,
    )  # fmt: skip


def configure(connection: Line, can: Capabilities, *, durable: bool) -> None:
    """How a connection of ours behaves. Settings of the session are made only where it is our own."""
    if not connection.bounds_all:
        connection.cursor_factory = Synced
    connection.most_s = None if can.own_session else TRANSACTION_S
    connection.prepare_threshold = 2 if can.prepare else None
    connection.prepared_max = PREPARED_MAX
    if can.own_session:
        row = connection.execute("SHOW synchronous_commit").fetchone()
        if not durable or (row is not None and row[0] != "remote_apply"):
            connection.execute(f"SET synchronous_commit = {'on' if durable else 'off'}")
        # Each statement is written for its indexes: its plan need not be made anew for each value, nor by the sizes
        # that the tables had when somebody last counted.
        connection.execute(
            "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off; "
            f"SET {connection.bounded_by} = '{TRANSACTION_S}s'{_peer_lost(connection)}"
        )


def _peer_lost(connection: Connection) -> str:
    """How soon the server notices that our machine is gone."""
    if not connection.info.hostaddr:
        return ""
    tries = max(1, TRANSACTION_S // PEER_S - 1)
    return (
        f"; SET tcp_keepalives_idle = {PEER_S}; SET tcp_keepalives_interval = {PEER_S}; "
        f"SET tcp_keepalives_count = {tries}; SET tcp_user_timeout = '{TRANSACTION_S}s'"
    )


def open_store(conninfo: str, place: str, schema: str, clock: StoreClock) -> Opened:
    """Which store this is, and what time it is there; its tables are made where there are none."""
    connection = connect(conninfo, place)
    connection.expect_answers(OPEN_S)
    try:
        with connection:
            can, dialect = met(connection, place, schema, steered=clock.steered)
            identity = identify(connection, place, dialect, can)
            _begin(clock, connection, place, dialect)
            return Opened(identity, dialect, can, connection.info.server_version)
    except psycopg.Error as wrong:
        raise translated(wrong, place) from wrong


def _begin(clock: StoreClock, connection: Connection, place: str, dialect: Dialect) -> None:
    sent_at = clock.elapsed_ms()
    _, _, ahead_ms, steps, _, clock_ms = _one(connection, "begin_to_read", place, dialect)
    store_ms = clock_ms + ahead_ms
    clock.begin(store_ms, steps, sent_at, _one(connection, "last_reading", place, dialect)[0])


def met(connection: Connection, place: str, schema: str, *, steered: bool) -> tuple[Capabilities, Dialect]:
    """What the server can do, and in which words it is asked. Raises `Invalid` for one that is too old."""
    if (version := connection.info.server_version) < LEAST_VERSION:
        raise Invalid(
            f"url: {place} is PostgreSQL {version // 10_000}; relet needs {LEAST_VERSION // 10_000} or newer",
            field="url", version=version,
        )  # fmt: skip
    can = probe(connection)
    return can, Dialect(schema, can.skip_locked, can.run, steered)


def forbidden() -> set[str]:
    """What `$RELET_POSTGRES_WITHOUT` names. Raises `Invalid` for what is no capability."""
    without = {name.strip() for name in os.environ.get(WITHOUT, "").split(",")} - {""}
    if unknown := sorted(without - set(CAN_DO_WITHOUT)):
        raise invalid(
            WITHOUT, f"{shown(unknown[0])} is none of {', '.join(CAN_DO_WITHOUT)}; name some of them, or none"
        )
    return without


def probe(connection: Connection) -> Capabilities:
    """What the server has; a forbidden capability is one that it has not."""
    without = forbidden()
    # A pooler gives out sessions of its own: the backend that answers is not the one that greeted us.
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    is_own = row is not None and row[0] == connection.info.backend_pid
    if not is_own:
        _check_pooler(connection)
    return Capabilities(
        skip_locked="skip_locked" not in without and _understands_skipping(connection),
        listen="listen" not in without and is_own,
        prepare="prepare" not in without and is_own,
        own_session=is_own,
        run="run" not in without and _knows_its_run(connection),
        tuning="tuning" not in without,
    )


def _check_pooler(connection: Connection) -> None:
    """One that may give every statement to another session has no transactions. Raises `Invalid`."""
    try:
        with connection.transaction():
            connection.execute("SELECT 1")
    except psycopg.Error as wrong:
        told = told_by(wrong)
        raise Invalid(
            f"url: the pooler at this address allows no transactions ({told}); nothing was changed. Set "
            "pool_mode = transaction (or session) there, or use the address of the server itself",
            field="url", code="RELET-POOLER", engine=told,
        ) from wrong  # fmt: skip


def _understands_skipping(connection: Connection) -> bool:
    try:
        connection.execute("SELECT 1 FROM pg_class LIMIT 0 FOR UPDATE SKIP LOCKED")
    except OTHER_WORDS:
        return False
    except psycopg.Error:
        return True  # it is understood, and refused for this table, or on a standby
    return True


def _knows_its_run(connection: Connection) -> bool:
    try:
        # In a schema that everybody may look into; it need not have the table.
        connection.execute(in_dialect("SELECT {server}", Dialect("pg_catalog")))
    except pg.ObjectNotInPrerequisiteState:
        return True  # in recovery: it knows, and will be refused when it is written to
    except (*OTHER_WORDS, pg.UndefinedFunction, pg.UndefinedObject, pg.InsufficientPrivilege):
        return False
    return True


def identify(connection: Connection, place: str, dialect: Dialect, can: Capabilities) -> Identity:
    """Which store it is; looked for twice, where another process makes the tables at the same time."""
    for is_last in (False, True):
        with contextlib.suppress(pg.UndefinedTable, pg.InvalidSchemaName):
            return identity_of(connection, place, dialect)
        try:
            make_tables(connection, place, dialect, can)
        except (pg.UniqueViolation, pg.DuplicateTable, pg.DuplicateSchema, pg.DuplicateObject):
            if is_last:
                raise
    raise Unavailable(f"{place}: its tables were made, and are gone again → relet doctor", code=DAMAGED)


def identity_of(connection: Connection, place: str, dialect: Dialect) -> Identity:
    """What a store that is there says of itself."""
    version, min_reader = _one(connection, "read_version", place, dialect)
    check_version(place, version, min_reader)
    # First the epoch: what comes with a later one is not taken for known.
    _, epoch, *_ = _one(connection, "begin_to_read", place, dialect)
    store_id, key, *_ = _one(connection, "read_identity", place, dialect)
    return Identity(store_id, bytes.fromhex(key), epoch)


def _one(connection: Connection, name: str, place: str, dialect: Dialect) -> Any:
    row = connection.execute(statement(name, dialect).text).fetchone()
    if row is None:
        raise row_gone(place)
    return row


def make_tables(connection: Connection, place: str, dialect: Dialect, can: Capabilities) -> None:
    """The schema and all of its tables, in one transaction: half of it is never seen."""
    refuse_others(connection, place, dialect.schema)
    try:
        try:
            _make(connection, dialect, TUNING if can.tuning else {})
        except OTHER_WORDS:
            _make(connection, dialect, {})
    except pg.InsufficientPrivilege as wrong:
        raise no_rights(place, dialect.schema) from wrong


def _make(connection: Connection, dialect: Dialect, tuning: Mapping[str, str]) -> None:
    with connection.transaction():
        # Only who may make schemas may ask for one that is there.
        if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = $1", [dialect.schema]).fetchone() is None:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(dialect.schema)}")
        for text in fresh(steps(folder_of(PACKAGE) / "migrations", SCHEMA, MIN_WRITER)):
            connection.execute(in_dialect(text, dialect))
        connection.execute(statement("insert_meta", dialect).text, _first_row(dialect))
        for text in tuning.values():
            connection.execute(in_dialect(text, dialect))


def _first_row(dialect: Dialect) -> list[Any]:
    given = {
        "version": SCHEMA, "store_id": secrets.token_hex(16), "secret_key": secrets.token_hex(32),
        "min_reader": MIN_READER, "min_writer": MIN_WRITER, "epoch": 0,
    }  # fmt: skip
    return [given[name] for name in statement("insert_meta", dialect).names]


def refuse_others(connection: Connection, place: str, schema: str) -> None:
    """A schema that holds somebody else's tables is left as it is. Raises `Invalid`."""
    row = connection.execute(
        "SELECT count(*), min(table_name) FROM information_schema.tables WHERE table_schema = $1", [schema]
    ).fetchone()
    if row is not None and row[0]:
        raise Invalid(
            f"schema: {schema} of {place} holds other tables (such as {row[1]}) and no store; it was left as it is. "
            "Name another schema, as in schema='relet_jobs'",
            field="schema", code="RELET-NOT-A-STORE",
        )  # fmt: skip


def no_rights(place: str, schema: str) -> Error:
    """The tables are not there, and this role may not make them."""
    return Forbidden(
        f"{place}: there is no schema {schema} yet, and this role may not make it; nothing was changed. Have "
        f"an owner run once: CREATE SCHEMA {quoted(schema)} AUTHORIZATION <this role>; or GRANT CREATE ON DATABASE "
        "to it",
        code="RELET-RIGHTS", schema=schema,
    )  # fmt: skip
