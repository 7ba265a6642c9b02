"""One server for the tests of a process; each of them finds an empty database."""

import contextlib

import psycopg

from tests.postgres import PostgresServer

OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


class Databases:
    """Started when it is first needed."""

    def __init__(self):
        self._stack = contextlib.ExitStack()
        self._url = None

    @contextlib.contextmanager
    def emptied(self):
        """The URL of a database in which nothing is, and nobody once the block ends."""
        if self._url is None:
            server = self._stack.enter_context(PostgresServer())
            self._url = self._stack.enter_context(server.database())
        try:
            yield self._url
        finally:
            with psycopg.connect(self._url, autocommit=True) as connection:
                connection.execute(OTHERS)
                connection.execute("DROP SCHEMA IF EXISTS relet, jobs CASCADE")

    def close(self):
        self._stack.close()
