"""A schema of its own that is gone when it was used: for a demonstration, or for a run of a crash test."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Final

import psycopg

from relet.core.errors import Forbidden
from relet.store.postgres.connect import connect
from relet.store.postgres.faults import translated
from relet.store.postgres.place import DEFAULT_SCHEMA, check_schema, conninfo_of, place_of, quoted

_LOCKS: Final = """
SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_database d ON d.oid = l.database
WHERE n.nspname = $1 AND d.datname = current_database() AND l.pid <> pg_backend_pid()
"""

_MAY_MAKE: Final = """
SELECT has_database_privilege(current_database(), 'CREATE'), quote_ident(current_database()),
    quote_ident(current_user)
"""


@contextlib.contextmanager
def passing_schema(url: str, prefix: str) -> Iterator[str]:
    """The name of a schema that is not there yet, in which a store may be made; whatever was, is removed at the end.

    Raises `Unavailable` where the database cannot be reached, `Forbidden` where this role may make none in it.
    """
    schema = check_schema(f"{prefix}_{secrets.token_hex(4)}")
    _check_rights(url)
    place = place_of(url, schema)
    try:
        yield schema
    finally:
        _remove(url, schema, place)


def nobody_within(url: str, schema: str) -> bool:
    """Is no transaction open that has touched a table of this schema; who is stopped within one keeps others out."""
    place = place_of(url, schema)
    try:
        with connect(conninfo_of(url), place) as connection:
            found = connection.execute(_LOCKS, [schema]).fetchone()
    except psycopg.Error as wrong:
        raise translated(wrong, place) from wrong
    return found is not None and found[0] == 0


def _check_rights(url: str) -> None:
    place = place_of(url, DEFAULT_SCHEMA)
    try:
        with connect(conninfo_of(url), place) as connection:
            found = connection.execute(_MAY_MAKE).fetchone()
    except psycopg.Error as wrong:
        raise translated(wrong, place) from wrong
    if found is not None and not found[0]:
        raise Forbidden(
            f"{place}: this makes a schema of its own and removes it at the end, and this role may not make one; "
            f"nothing was changed. Have an owner run once: GRANT CREATE ON DATABASE {found[1]} TO {found[2]}",
            code="RELET-RIGHTS",
        )  # fmt: skip


def _remove(url: str, schema: str, place: str) -> None:
    try:
        with connect(conninfo_of(url), place) as connection, connection.transaction():
            # Else it would tell that there was nothing. For this transaction: the session may be lent by a pooler.
            connection.execute("SET LOCAL client_min_messages = warning")
            connection.execute(f"DROP SCHEMA IF EXISTS {quoted(schema)} CASCADE")
    except psycopg.Error as wrong:
        raise translated(wrong, place) from wrong
