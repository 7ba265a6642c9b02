"""What a store on a server stands on, looked at without opening it: nothing is written, and nothing is refused."""

from __future__ import annotations

import re
import time
from typing import Any, Final

import msgspec
import psycopg

from relet.core.doctor.moved import Moved
from relet.core.doctor.server_checks import IDLE_S
from relet.core.doctor.server_facts import (
    RightsFacts,
    SchemaFacts,
    ServerClockFacts,
    ServerFacts,
    SessionFacts,
    TableFacts,
)
from relet.store.copying import went_on
from relet.store.migrate import CLOSED
from relet.store.postgres.connect import LEAST_VERSION, Connection, connect, forbidden, probe
from relet.store.postgres.place import conninfo_of, located, place_of
from relet.store.postgres.schema import MIN_WRITER, SCHEMA
from relet.store.postgres.texts import PACKAGE, Dialect, numbered
from relet.store.postgres.tuned import untuned
from relet.store.postgres.upgrade_steps import fresh, steps
from relet.store.statements import folder_of, load

EXAMINE_SQL: Final = load(PACKAGE, "examine.sql", [
    "find_role", "find_rights", "find_settings", "find_clock", "find_state", "find_gone", "find_tables",
    "find_invalid", "find_sessions", "find_connections", "has_artifacts",
])  # fmt: skip
_TABLE: Final = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?relet\.(\w+)")
_GONE: Final = re.compile(r"DROP TABLE (?:IF EXISTS )?relet\.(\w+)")


def look_at(url: str, schema: str | None = None, *, artifacts: str | None = None) -> ServerFacts:
    """The facts about the server of a store; what cannot be found out is left open. Raises where there is none."""
    url, schema = located(url, schema)
    conninfo, place = conninfo_of(url), place_of(url, schema)
    with connect(conninfo, place) as connection:
        look = Look(connection, place, Dialect(schema))
        facts = ServerFacts(
            place=place, version=connection.info.server_version, least_version=LEAST_VERSION, schema_name=schema,
            artifacts=artifacts,
        )  # fmt: skip
        if connection.info.server_version < LEAST_VERSION:
            return facts
        return msgspec.structs.replace(facts, **look.all())


class Look:
    """Question by question; one that this role may not ask answers nothing."""

    def __init__(self, connection: Connection, place: str, dialect: Dialect) -> None:
        self._connection, self._place, self._dialect = connection, place, dialect

    def all(self) -> dict[str, Any]:
        """The fields that are known."""
        can = probe(self._connection)
        found: dict[str, Any] = {
            "own_session": can.own_session, "listens": can.listen, "skips_locked": can.skip_locked,
            "knows_its_run": can.run, "without": sorted(forbidden()),
        }  # fmt: skip
        if rows := self._ask("find_role"):
            found["is_standby"], found["standbys"] = rows[0]
        if rows := self._ask("find_rights", schema=self._dialect.schema):
            found["rights"] = RightsFacts(**dict(zip(RightsFacts.__struct_fields__, rows[0], strict=True)))
        settings = dict(self._ask("find_settings"))
        found["settings"] = settings
        tables = self._ask("find_tables", schema=self._dialect.schema)
        state = (self._ask("find_state") or [None])[0]
        found["clock"] = self._clock(state)
        if state is not None:
            found["schema"] = self._schema(state, {row[0] for row in tables})
            found["moved"] = self._moved() if found["schema"].is_shut else None
            found["tables"] = [_table(row) for row in tables]
            found["names_artifacts"] = self._ask("has_artifacts") == [(True,)]
        sessions = self._ask("find_sessions", schema=self._dialect.schema, least_s=IDLE_S)
        found["sessions"] = [_session(row) for row in sessions]
        if rows := self._ask("find_connections"):
            found["connections"], unseen = rows[0]
            found["connections_most"] = _room(settings)
            found["sees_others"] = not unseen
        return found

    def _clock(self, state: Any) -> ServerClockFacts | None:
        before = time.time() * 1_000
        rows = self._ask("find_clock")
        after = time.time() * 1_000
        if not rows:
            return None
        return ServerClockFacts(
            off_ms=float(rows[0][0]) - (before + after) / 2, within_ms=(after - before) / 2,
            ahead_ms=0 if state is None else state[2], steps=0 if state is None else state[3],
        )  # fmt: skip

    def _schema(self, state: Any, tables: set[str]) -> SchemaFacts:
        version, min_writer, *_ = state
        return SchemaFacts(
            version=version, knows=SCHEMA, min_writer=min_writer, raises_to=MIN_WRITER, is_shut=min_writer >= CLOSED,
            missing=sorted(known_tables() - tables) if version >= SCHEMA else [],
            invalid=[row[0] for row in self._ask("find_invalid", schema=self._dialect.schema)],
            untuned=untuned(self._connection, self._dialect),
        )  # fmt: skip

    def _moved(self) -> Moved | None:
        if not (rows := self._ask("find_gone")):
            return None  # a copy is being made, or was cut
        place, wall_ms = rows[0]
        return Moved(to=place, told=went_on(f"the store of {self._place} was taken back to", place, wall_ms))

    def _ask(self, name: str, **params: Any) -> list[Any]:
        known = numbered(EXAMINE_SQL[name], self._dialect)
        try:
            return self._connection.execute(known.text, known.values(params)).fetchall()
        except psycopg.DatabaseError:
            if self._connection.closed:
                raise
            return []  # it is not there, or not for this role; why, the attempt to open the store says


def known_tables() -> set[str]:
    """Those of this relet's schema."""
    texts = fresh(steps(folder_of(PACKAGE) / "migrations", SCHEMA, MIN_WRITER))
    gone = {match[1] for text in texts if (match := _GONE.match(text))}
    return {match[1] for text in texts if (match := _TABLE.match(text))} - gone


def _table(row: Any) -> TableFacts:
    name, live, dead, size, index_size, is_vacuumed = row
    return TableFacts(
        name=name, live=live, dead=dead, bytes=size, index_bytes=index_size, is_vacuumed=is_vacuumed
    )  # fmt: skip


def _session(row: Any) -> SessionFacts:
    pid, name, open_s, is_idle, holds_back, tables = row
    return SessionFacts(
        pid=pid, name=name, open_s=open_s, is_idle=is_idle, holds_back=holds_back, tables=list(tables)
    )  # fmt: skip


def _room(settings: dict[str, str]) -> int:
    return int(settings.get("max_connections", 0)) - int(settings.get("superuser_reserved_connections", 0))
