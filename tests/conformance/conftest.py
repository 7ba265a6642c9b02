"""Routes to a SQLite store, and to one in a PostgreSQL database; the suite runs over each of them."""

import contextlib
from pathlib import Path

import pytest

from tests.conformance.awaiting import AwaitingRoute, Loop
from tests.conformance.blocking import BlockingRoute
from tests.conformance.desk import Process
from tests.conformance.on_postgres import AwaitingPostgresRoute, PostgresRoute
from tests.conformance.two_processes import TwoProcesses
from tests.folders import quick_folder
from tests.postgres_suites.databases import Databases
from tests.postgres_suites.matrix import ROUTES as TO_POSTGRES
from tests.postgres_suites.matrix import pytest_collection_modifyitems

__all__ = ["pytest_collection_modifyitems"]


@pytest.fixture(scope="session")
def loop():
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def process():
    process = Process()
    yield process
    process.close()


@pytest.fixture(scope="session")
def databases(request):
    databases = Databases(request.config)
    yield databases
    databases.close()


@pytest.fixture
def database(databases):
    """The database of a kind, which is emptied after the test."""
    with contextlib.ExitStack() as after:

        def database(kind):
            found = databases.of(kind)
            after.callback(found.clear)
            return found

        yield database


def open_route(name, folder, request):
    match name:
        case "sqlite":
            return BlockingRoute(folder)
        case "sqlite-awaiting":
            return AwaitingRoute(folder, request.getfixturevalue("loop"))
        case "sqlite-two-processes":
            return TwoProcesses(folder, request.getfixturevalue("process"))
    database = request.getfixturevalue("database")
    if name == "postgres-awaiting":
        return AwaitingPostgresRoute(folder, database("18"), request.getfixturevalue("loop"))
    return PostgresRoute(folder, database(TO_POSTGRES[name]))


@pytest.fixture
def folder():
    with quick_folder() as folder:
        yield Path(folder)


ROUTES = [
    "sqlite", "sqlite-awaiting", "sqlite-two-processes",
    *(pytest.param(name, marks=pytest.mark.postgres) for name in [*TO_POSTGRES, "postgres-awaiting"]),
]  # fmt: skip


@pytest.fixture(params=ROUTES)
def route(request, folder):
    route = open_route(request.param, folder, request)
    yield route
    route.close()
    assert route.verified()
