"""The same sequences over a PostgreSQL server: fewer of them, since each step crosses a socket."""

import pytest
from hypothesis import HealthCheck, settings
from psycopg.rows import dict_row

from relet.testing.stores import open_store
from tests.model import witness
from tests.model.test_machine import Machine, explore
from tests.postgres_suites.databases import Databases
from tests.postgres_suites.matrix import ROUTES
from tests.postgres_suites.shared import forbidding

pytestmark = pytest.mark.postgres

QUICK = settings(
    max_examples=25, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
KEYS = witness.KEYS | {"evidence": ("seq",)}
SEEN_AT_LEAST = {
    (verb, how) for verb in ("renew", "save", "complete", "claim_task") for how in ("accepted", "refused")
}


class Witness:
    """Reads the tables in the order of the snapshot; nothing is written meanwhile."""

    def __init__(self, looker):
        self._looker = looker

    def read(self):
        with self._looker.cursor(row_factory=dict_row) as cursor:
            return witness.Reading(*(dict(self._rows(cursor, table, key)) for table, key in KEYS.items()))

    def close(self):
        """The connection is the test's."""

    def _rows(self, cursor, table, key):
        for row in cursor.execute(f"SELECT * FROM relet.{table} ORDER BY {', '.join(key)}"):
            yield tuple(row[column] for column in key), row


@pytest.fixture(params=ROUTES)
def on_postgres(request):
    databases = Databases(request.config)
    database = databases.of(ROUTES[request.param])

    class OnPostgres(Machine):
        """Its first clients have warm connections; those after a crash are new."""

        def __init__(self):
            database.clear()
            with database.shelf.in_use():
                super().__init__()

        def opened(self):
            return open_store(self.folder.name, self.clock, url=database.url)

        def look(self):
            return Witness(database.looker)

        @property
        def store_ms(self):
            return self.clock.mono_ms()

    with forbidding(database.place):
        yield OnPostgres
    databases.close()


def test_no_sequence_of_workers_crashes_and_clocks_breaks_a_promise(on_postgres, request):
    explore(on_postgres, QUICK, SEEN_AT_LEAST, request.config.option.hypothesis_seed)
