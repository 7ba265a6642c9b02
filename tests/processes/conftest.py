"""Fixtures of the tests with processes; most of these tests run over PostgreSQL servers too."""

import pytest

from tests.postgres_suites.matrix import ROUTES, pytest_collection_modifyitems
from tests.postgres_suites.shared import empty_database, forbidding
from tests.processes.fixtures import actor, db, start, steered, url

__all__ = ["actor", "database", "db", "pytest_collection_modifyitems", "start", "steered", "url"]

ON_POSTGRES = {
    "test_apart", "test_crowd", "test_forked", "test_frozen", "test_heartbeat", "test_killed_at_commit",
    "test_killed_sweep", "test_poison", "test_races", "test_rollout", "test_sidecar", "test_sidecar_of_a_block",
    "test_threads",
}  # fmt: skip


@pytest.fixture
def database(request):
    """The URL of an empty database where a test runs over a server; None over SQLite."""
    if (kind := ROUTES.get(getattr(request, "param", None))) is None:
        yield None
        return
    with empty_database(request.config, kind) as place, forbidding(place):
        yield place.url


def pytest_configure(config):
    config.addinivalue_line("markers", "of_sqlite: about what only SQLite has: its file, its lock, a proof of death")


def pytest_generate_tests(metafunc):
    module = metafunc.module.__name__.rpartition(".")[2]
    of_sqlite = metafunc.definition.get_closest_marker("of_sqlite")
    if module in ON_POSTGRES and "database" in metafunc.fixturenames and not of_sqlite:
        engines = ["sqlite", *(pytest.param(route, marks=pytest.mark.postgres) for route in ROUTES)]
        metafunc.parametrize("database", engines, indirect=True)
