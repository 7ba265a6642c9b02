"""Routes to a SQLite store, and to one in a PostgreSQL database; the suite runs over each of them."""

import contextlib
from pathlib import Path

import pytest

from tests.conformance.awaiting import AwaitingRoute, Loop
from tests.conformance.blocking import BlockingRoute
from tests.conformance.desk import Process
from tests.conformance.on_postgres import AwaitingPostgresRoute, PostgresRoute
from tests.conformance.over_http import AwaitingHttpRoute, HttpRoute
from tests.conformance.two_processes import TwoProcesses
from tests.folders import quick_folder
from tests.postgres_suites import matrix
from tests.postgres_suites.databases import Databases
from tests.postgres_suites.matrix import OVER_HTTP
from tests.postgres_suites.matrix import ROUTES as TO_POSTGRES
from tests.server.wire import Wire


def pytest_collection_modifyitems(config, items):
    """A transaction of the user's own is on the database, which nobody reaches through a service."""

    def is_left_out(item):
        name = item.callspec.params.get("route", "") if hasattr(item, "callspec") else ""
        return "http" in name and item.path.name == "test_transaction.py"

    matrix.leave_out(config, items, is_left_out)
    matrix.pytest_collection_modifyitems(config, items)


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


@pytest.fixture(scope="session")
def wire():
    wire = Wire()
    yield wire
    wire.close()


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
        case "http" | "http-awaiting":
            return over_http(name, BlockingRoute(folder), request)
    database = request.getfixturevalue("database")
    if name.startswith("postgres-http"):
        return over_http(name, PostgresRoute(folder, database("18")), request)
    if name == "postgres-awaiting":
        return AwaitingPostgresRoute(folder, database("18"), request.getfixturevalue("loop"))
    return PostgresRoute(folder, database(TO_POSTGRES[name]))


def over_http(name, engine, request):
    wire = request.getfixturevalue("wire")
    if name.endswith("awaiting"):
        return AwaitingHttpRoute(wire, engine, request.getfixturevalue("loop"))
    return HttpRoute(wire, engine)


@pytest.fixture
def folder():
    with quick_folder() as folder:
        yield Path(folder)


ON_A_SERVER = [*TO_POSTGRES, "postgres-http", "postgres-http_awaiting", "postgres-awaiting"]
ROUTES = [
    "sqlite", "sqlite-awaiting", "sqlite-two-processes",
    *(pytest.param(name, marks=pytest.mark.slow) for name in OVER_HTTP),
    *(pytest.param(name, marks=pytest.mark.postgres) for name in ON_A_SERVER),
]  # fmt: skip


@pytest.fixture(params=ROUTES)
def route(request, folder):
    route = open_route(request.param, folder, request)
    yield route
    route.close()
    assert route.verified()
