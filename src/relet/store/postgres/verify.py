"""verify: does all hold that must hold of a store, row by row; read at one moment, while others go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, Protocol

import psycopg

from relet.core.upkeep import Verified, VerifiedLog
from relet.store.postgres.connect import connect
from relet.store.postgres.faults import translated
from relet.store.postgres.texts import PACKAGE, Dialect, in_dialect
from relet.store.postgres.transact import TO_READ
from relet.store.statements import load
from relet.store.verify import VERIFY_STATEMENTS, Exists, Query, findings, verified, verified_log

VERIFY_SQL: Final = load(PACKAGE, "verify.sql", VERIFY_STATEMENTS)
ROWS_AT_ONCE: Final = 500


class Reached(Protocol):
    """A store that can be read, usable or not."""

    conninfo: str
    place: str
    dialect: Dialect


def verify(store: Reached, exists: Exists | None) -> Verified:
    """Everything of the store as it stands now. Raises `Unavailable` where it cannot be read."""
    with _one_moment(store) as query:
        return verified(store.place, lambda looked: findings(query, looked, exists))


def verify_log(store: Reached) -> VerifiedLog:
    """As `verify`, the audit log alone."""
    with _one_moment(store) as query:
        return verified_log(store.place, query)


@contextmanager
def _one_moment(store: Reached) -> Iterator[Query]:
    connection = connect(store.conninfo, store.place)
    numbers = count(1)

    def query(name: str) -> Iterator[Any]:
        # On the server: the rows of a large store need not fit into the memory of whoever looks.
        cursor = psycopg.ServerCursor(connection, f"every_{next(numbers)}")
        cursor.itersize = ROWS_AT_ONCE
        with cursor:
            cursor.execute(in_dialect(VERIFY_SQL[name], store.dialect).replace("%", "%%").encode())
            yield from cursor

    try:
        with connection:
            connection.execute(TO_READ)
            yield query
    except psycopg.Error as wrong:
        raise translated(wrong, store.place) from wrong
