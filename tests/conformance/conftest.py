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
from tests.postgres_suites.databases import KINDS, Databases
from tests.postgres_suites.matrix import IS_QUICK, MATRIX, RUNS_ALL, leave_out, number


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
    return PostgresRoute(folder, database(name.removeprefix("postgres-") if "-" in name else "18"))


@pytest.fixture
def folder():
    with quick_folder() as folder:
        yield Path(folder)


TO_POSTGRES = ["postgres", "postgres-awaiting", *(f"postgres-{kind}" for kind in KINDS if kind != "18")]
ROUTES = [
    "sqlite", "sqlite-awaiting", "sqlite-two-processes",
    *(pytest.param(name, marks=pytest.mark.postgres) for name in TO_POSTGRES),
]  # fmt: skip


@pytest.fixture(params=ROUTES)
def route(request, folder):
    route = open_route(request.param, folder, request)
    yield route
    route.close()
    assert route.verified()


def pytest_collection_modifyitems(config, items):
    """Each test runs over `postgres`, and over one of its other routes; where it is to be quick, over one of all."""
    leave_out(config, items, is_left_out)


def is_left_out(item):
    route = item.callspec.params.get("route") if hasattr(item, "callspec") else None
    if route not in TO_POSTGRES or RUNS_ALL:
        return False
    if MATRIX != ["one"] and not IS_QUICK:
        return route not in MATRIX
    others = TO_POSTGRES if IS_QUICK else TO_POSTGRES[1:]
    return route in others and route != others[number(item.nodeid.replace(route, "", 1), len(others))]
