"""Look into the store of a test past the library, whichever engine it is of."""

from contextlib import closing, contextmanager

import apsw
import psycopg
from psycopg import IsolationLevel


def is_in_a_file(db):
    return db.backend.url.startswith("sqlite:")


def ask(db, statement):
    """The rows of a query, which names the tables alone."""
    if is_in_a_file(db):
        with closing(apsw.Connection(db.place, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return connection.execute(statement).fetchall()
    with connected(db) as connection:
        return connection.execute(statement).fetchall()


@contextmanager
def connected(db):
    """Past the library to a store of a server's; its tables are found by their names alone."""
    with psycopg.connect(db.backend.url) as connection:
        # Nothing that it reads makes others begin anew; and what is set ends here, whose session a pooler gave it.
        connection.isolation_level = IsolationLevel.READ_COMMITTED
        connection.execute(f"SET LOCAL search_path = {db.backend.store.schema}")
        yield connection
