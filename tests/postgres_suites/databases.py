"""Databases with a store in them that each test finds empty; one for each kind of server."""

import contextlib
import os
from contextlib import contextmanager

import psycopg

from relet.core.rules.sweep import Sweep
from relet.store.postgres import backend
from relet.store.postgres.clock import SteeredClock
from relet.store.postgres.connect import WITHOUT
from relet.store.postgres.engine import PostgresStore
from relet.testing.clock import Clock
from tests.pgbouncer import PgBouncer
from tests.postgres import PostgresServer
from tests.postgres_suites.shared import server_of

KINDS = ("18", "15", "pgbouncer", "serializable", "bare")
FORBIDDEN = "skip_locked,listen,prepare,run"
TABLES = (
    "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'relet' AND tablename NOT IN ('meta', 'run')"
)
SEQUENCES = "SELECT quote_ident(sequencename) FROM pg_sequences WHERE schemaname = 'relet'"
THE_OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class Shelf:
    """Stores of one database that no test has in use: a connection is slow in its first transactions.

    A store that a client of a test closes is put here, and goes on with the clock of the next test.
    """

    def __init__(self, without=""):
        self._without = without
        self._stores = []

    @contextmanager
    def in_use(self):
        """Stores that are opened in this block come from here."""
        with contextlib.ExitStack() as patched:
            patched.callback(setattr, backend, "PostgresStore", backend.PostgresStore)
            backend.PostgresStore = self._store
            patched.callback(os.environ.pop, WITHOUT, None)
            os.environ[WITHOUT] = self._without
            yield

    def empty(self):
        """Really close them."""
        while self._stores:
            PostgresStore.close(self._stores.pop())

    def _store(self, url, schema, *, clock):
        if not self._stores:
            return KeptStore(self._stores, url, schema, clock=clock)
        store = self._stores.pop()
        store.clock = SteeredClock(clock)
        return store


class KeptStore(PostgresStore):
    """A store that goes back to its shelf."""

    def __init__(self, shelf, url, schema, *, clock):
        super().__init__(url, schema, clock=clock)
        self._shelf = shelf

    def close(self):
        self._shelf.append(self)


class Database:
    """One database; `url` is where stores find it, `direct_url` where the test does."""

    def __init__(self, url, direct_url, without=""):
        self.url, self.direct_url = url, direct_url
        self.shelf = Shelf(without)
        self.looker = psycopg.connect(direct_url, autocommit=True)
        self.looker.execute("SET lock_timeout = 2000")
        self._make()
        self._empty = self._statement()
        self.clear()

    def clear(self):
        """Nothing of a test is left for the next one; the store itself stays."""
        try:
            self.looker.execute(self._empty)
        except psycopg.errors.LockNotAvailable:
            # Whoever a test has left behind in a transaction is gone before the next one begins.
            self.looker.execute(f"SELECT pg_terminate_backend(pid) {THE_OTHERS}")
            self.shelf.empty()
            self.looker.execute(self._empty)

    def close(self):
        self.shelf.empty()
        self.looker.close()

    def _make(self):
        """The store, with what its first transaction says of the server's run."""
        with self.shelf.in_use():
            first = backend.PostgresBackend(self.url, "default", clock=Clock())
        first.call(Sweep())
        first.close()

    def _statement(self):
        # Of tables this small rows are deleted in a hundredth of the time that it takes to truncate them.
        tables, sequences = ([name for (name,) in self.looker.execute(query)] for query in (TABLES, SEQUENCES))
        deletes = ", ".join(f"of_{name} AS (DELETE FROM relet.{name})" for name in tables)
        restarts = ", ".join(f"setval('relet.{name}', 1, false)" for name in sequences)
        return f"DROP TABLE IF EXISTS mine; WITH {deletes} SELECT {restarts}"


class Databases:
    """All that the tests of one process have asked for; each is made when it is first needed."""

    def __init__(self, config):
        self._config = config
        self._stack = contextlib.ExitStack()
        self._made = {}

    def of(self, kind):
        if kind not in self._made:
            database = self._database(kind)
            self._stack.callback(database.close)
            self._made[kind] = database
        return self._made[kind]

    def close(self):
        self._stack.close()

    def _database(self, kind):
        server = self._stack.enter_context(PostgresServer("15")) if kind == "15" else server_of(self._config)
        url = direct_url = self._stack.enter_context(server.database())
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        if kind == "pgbouncer":
            url = self._stack.enter_context(PgBouncer(server)).url(name)
        elif kind == "serializable":
            server.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
        return Database(url, direct_url, FORBIDDEN if kind == "bare" else "")
