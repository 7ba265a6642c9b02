"""Routes to a store in a PostgreSQL database: its rows, and what every writer waits for."""

import contextlib
from contextlib import contextmanager
from functools import cached_property

import psycopg
from psycopg.rows import dict_row

from relet.client.awaiting import AsyncClient
from relet.testing import Clock
from relet.testing.stores import open_store
from tests.conformance.awaiting import Awaited
from tests.conformance.on_sqlite import TABLES
from tests.postgres import PostgresServer
from tests.waiting import eventually

ORDER = TABLES | {"evidence": "seq"}
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


class Servers:
    """A server for all tests of a process, with one database that each test finds empty."""

    def __init__(self):
        self._stack = contextlib.ExitStack()
        self._server = None

    @contextmanager
    def emptied(self):
        if self._server is None:
            self._server = self._stack.enter_context(PostgresServer())
            self._url = self._stack.enter_context(self._server.database())
        try:
            yield self._url
        finally:
            with psycopg.connect(self._url, autocommit=True) as connection:
                # Whoever a test has left behind is gone before the next one begins.
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                tables = connection.execute(
                    "SELECT string_agg(schemaname || '.' || tablename, ', ') FROM pg_tables "
                    "WHERE schemaname = 'relet' AND tablename NOT IN ('meta', 'run')"
                ).fetchone()[0]
                if tables:
                    connection.execute(f"TRUNCATE {tables} RESTART IDENTITY")
                connection.execute("DROP TABLE IF EXISTS mine")

    def close(self):
        self._stack.close()


class PostgresRoute:
    """A database with a store in it, and clients of it."""

    out_of_reach = (
        "UPDATE relet.tasks SET state = 'done'", 'DELETE FROM "relet".events', " -- now\ncommit",
        "SET search_path = relet", "DROP TABLE Relet . waits", "ROLLBACK AND CHAIN", "SELECT 1; END",
    )  # fmt: skip

    def __init__(self, folder, url, clock=None):
        self.folder, self.url = folder, url
        self.clock = clock or Clock()
        self._opened = []
        self.db = self._open()

    @cached_property
    def other(self):
        return self._open()

    @cached_property
    def stranger(self):
        return self._open(tenant="elsewhere")

    def _open(self, **options):
        client = open_store(self.folder, self.clock, url=self.url, **options)
        self._opened.append(client)
        return client

    def call(self, ask):
        return self.db.backend.call(ask)

    def rows(self):
        with self._reader() as reader:
            return {
                table: reader.execute(f"SELECT * FROM relet.{table} ORDER BY {order}").fetchall()
                for table, order in ORDER.items()
            }

    @contextmanager
    def _reader(self):
        with psycopg.connect(self.url, autocommit=True, row_factory=dict_row) as reader:
            yield reader

    @contextmanager
    def locked(self):
        """Hold the row that every transaction reads first."""
        with psycopg.connect(self.url) as holder, self._reader() as looker:
            holder.execute("LOCK TABLE relet.meta IN ACCESS EXCLUSIVE MODE")
            yield lambda: eventually(lambda: looker.execute(WAITING).fetchone()["count"])
            holder.rollback()

    def verified(self):
        assert (found := self._opened[0].backend.verify().findings) == [], found
        return True

    def close(self):
        for client in self._opened:
            client.close()


class AwaitingPostgresRoute(PostgresRoute):
    """The awaiting client, driven from one event loop."""

    def __init__(self, folder, url, loop):
        self._loop = loop
        super().__init__(folder, url)

    def _open(self, **options):
        return Awaited(self._loop, AsyncClient(super()._open(**options)))

    def call(self, ask):
        return self._loop.run(self.db.inner.hop(self.db.inner.blocking.backend.call, ask))
