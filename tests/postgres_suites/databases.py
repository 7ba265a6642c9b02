"""Databases with a store in them that each test finds empty; one for each kind of server."""

import contextlib
from contextlib import contextmanager

import psycopg

from relet.core.rules.sweep import Sweep
from relet.store.postgres import backend
from relet.store.postgres.clock import SteeredClock
from relet.store.postgres.engine import PostgresStore
from relet.testing.clock import Clock
from tests.postgres_suites.shared import empty_database, forbidding

TABLES = (
    "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'relet' AND tablename NOT IN ('meta', 'run')"
)
SEQUENCES = "SELECT quote_ident(sequencename) FROM pg_sequences WHERE schemaname = 'relet'"
THE_OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class Shelf:
    """Stores of one database that no test has in use: a connection is slow in its first transactions.

    A store that a client of a test closes is put here, and goes on with the clock of the next test.
    """

    def __init__(self, place):
        self._place = place
        self._stores = []

    @contextmanager
    def in_use(self):
        """Stores that are opened in this block come from here."""
        with contextlib.ExitStack() as patched:
            patched.callback(setattr, backend, "PostgresStore", backend.PostgresStore)
            backend.PostgresStore = self._store
            patched.enter_context(forbidding(self._place))
            yield

    def empty(self):
        """Really close them."""
        while self._stores:
            PostgresStore.close(self._stores.pop())

    def _store(self, url, schema, *, clock):
        if not self._stores:
            return KeptStore(self._stores, url, schema, clock=clock, is_hot=self._place.is_hot)
        store = self._stores.pop()
        store.clock = SteeredClock(clock)
        return store


class KeptStore(PostgresStore):
    """A store that goes back to its shelf."""

    def __init__(self, shelf, url, schema, *, clock, is_hot):
        super().__init__(url, schema, clock=clock)
        self._shelf = shelf
        self.is_hot = is_hot
        # A steered clock leaps from one claim to the next: a look of a moment ago is an old one.
        self.looks.is_fresh = lambda *_: False

    def close(self):
        self._shelf.append(self)


class Database:
    """One database, at its place."""

    def __init__(self, place):
        self.place = place
        self.url, self.direct_url = place.url, place.direct_url
        self.shelf = Shelf(place)
        self.looker = psycopg.connect(place.direct_url, autocommit=True)
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
            place = self._stack.enter_context(empty_database(self._config, kind))
            self._made[kind] = self._stack.enter_context(contextlib.closing(Database(place)))
        return self._made[kind]

    def close(self):
        self._stack.close()
