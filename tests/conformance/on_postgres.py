"""Routes to a store in a PostgreSQL database: its rows, and what every writer waits for."""

from contextlib import contextmanager
from functools import cached_property

import psycopg
from psycopg.rows import dict_row

from relet.client.awaiting import AsyncClient
from relet.store.postgres.texts import in_dialect
from relet.store.postgres.verify import VERIFY_SQL
from relet.store.verify import Looked, findings
from relet.testing import Clock
from relet.testing.stores import open_store
from tests.conformance.awaiting import Awaited
from tests.conformance.on_sqlite import TABLES
from tests.waiting import eventually

ORDER = TABLES | {"evidence": "seq"}
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


class PostgresRoute:
    """A database with a store in it, and clients of it."""

    objects_per_upload = 1

    out_of_reach = (
        "UPDATE relet.tasks SET state = 'done'", 'DELETE FROM "relet".events', " -- now\ncommit",
        "SET search_path = relet", "DROP TABLE Relet . waits", "ROLLBACK AND CHAIN", "SELECT 1; END",
    )  # fmt: skip

    def __init__(self, folder, database, clock=None):
        self.folder, self._database = folder, database
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
        with self._database.shelf.in_use():
            client = open_store(self.folder, self.clock, url=self._database.url, **options)
        self._opened.append(client)
        return client

    def call(self, ask):
        return self.db.backend.call(ask)

    def rows(self):
        with self._looker.cursor(row_factory=dict_row) as cursor:
            return {
                table: cursor.execute(f"SELECT * FROM relet.{table} ORDER BY {order}").fetchall()
                for table, order in ORDER.items()
            }

    @property
    def _looker(self):
        return self._database.looker

    @contextmanager
    def locked(self):
        """Hold the row that every transaction reads first."""
        with psycopg.connect(self._database.direct_url) as holder, self._told_after_the_wait():
            holder.execute("LOCK TABLE relet.meta IN ACCESS EXCLUSIVE MODE")
            yield lambda: eventually(lambda: self._looker.execute(WAITING).fetchone()[0])
            holder.rollback()

    @contextmanager
    def _told_after_the_wait(self):
        """The rules alone: a single statement cannot be told what a steered clock says once it has waited."""
        stores = [client.backend.store for client in self._opened]
        was = [store.is_hot for store in stores]
        for store in stores:
            store.is_hot = False
        yield
        for store, is_hot in zip(stores, was, strict=True):
            store.is_hot = is_hot

    def verified(self):
        """As `db.verify()` has it, over a connection that is open already: it is done after each test."""
        dialect = self._opened[0].backend.store.dialect

        def query(name):
            yield from self._looker.execute(in_dialect(VERIFY_SQL[name], dialect))

        assert (found := [*findings(query, Looked(), None)]) == [], found
        return True

    def close(self):
        for client in self._opened:
            client.close()


class AwaitingPostgresRoute(PostgresRoute):
    """The awaiting client, driven from one event loop."""

    def __init__(self, folder, database, loop):
        self._loop = loop
        super().__init__(folder, database)

    def _open(self, **options):
        return Awaited(self._loop, AsyncClient(super()._open(**options)))

    def call(self, ask):
        return self._loop.run(self.db.inner.hop(self.db.inner.blocking.backend.call, ask))
