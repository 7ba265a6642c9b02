"""Cursors that keep a user's statements from relet's tables by mistake; no wall against somebody who means to."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from relet.core.errors import Invalid
from relet.store.postgres.out_of_reach import is_out_of_reach

Cursors = tuple[type[psycopg.Cursor[Any]], type[psycopg.ServerCursor[Any]]]


def guarded(schema: str) -> Cursors:
    """Those of a connection: without a name, and with one."""

    def check(cursor: psycopg.Cursor[Any], query: Any) -> None:
        connection = cursor.connection
        escapes = connection.info.parameter_status("standard_conforming_strings") == "off"
        if is_out_of_reach(_rendered(query, connection), schema, escapes=escapes):
            raise _out_of_reach(schema)

    class Guard:
        """Each way in which a statement can be sent."""

        def execute(self, query: Any, *args: Any, **named_args: Any) -> Any:
            check(self, query)  # type: ignore[arg-type]
            return super().execute(query, *args, **named_args)  # type: ignore[misc]

        def executemany(self, query: Any, *args: Any, **named_args: Any) -> Any:
            check(self, query)  # type: ignore[arg-type]
            return super().executemany(query, *args, **named_args)  # type: ignore[misc]

        def stream(self, query: Any, *args: Any, **named_args: Any) -> Any:
            check(self, query)  # type: ignore[arg-type]
            return super().stream(query, *args, **named_args)  # type: ignore[misc]

        def copy(self, statement: Any, *args: Any, **named_args: Any) -> Any:
            check(self, statement)  # type: ignore[arg-type]
            return super().copy(statement, *args, **named_args)  # type: ignore[misc]

    class Guarded(Guard, psycopg.Cursor[Any]):
        pass

    class GuardedNamed(Guard, psycopg.ServerCursor[Any]):
        pass

    return Guarded, GuardedNamed


def _rendered(query: Any, connection: psycopg.Connection[Any]) -> str:
    """A statement as it is sent, however it was composed."""
    if isinstance(query, str):
        return query
    if isinstance(query, bytes):
        return query.decode(errors="replace")
    return sql.as_string(query, connection)


def _out_of_reach(schema: str) -> Invalid:
    return Invalid(
        f"transaction: a statement in it is not allowed here, and all of it was rolled back: it names one of relet's "
        f"tables (those of the schema {schema}), sets the search_path, or ends or opens a transaction. Use tables of "
        "another schema; relet commits at the end of the block",
        field="transaction",
    )
