"""Routes to a SQLite store, and to one in a PostgreSQL database; the suite runs over each of them."""

from pathlib import Path

import pytest

from tests.conformance.awaiting import AwaitingRoute, Loop
from tests.conformance.blocking import BlockingRoute
from tests.conformance.desk import Process
from tests.conformance.on_postgres import AwaitingPostgresRoute, PostgresRoute, Servers
from tests.conformance.two_processes import TwoProcesses
from tests.folders import quick_folder


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
def servers():
    servers = Servers()
    yield servers
    servers.close()


@pytest.fixture
def database(servers):
    with servers.emptied() as url:
        yield url


def open_route(name, folder, request):
    match name:
        case "postgres":
            return PostgresRoute(folder, request.getfixturevalue("database"))
        case "postgres-awaiting":
            return AwaitingPostgresRoute(folder, request.getfixturevalue("database"), request.getfixturevalue("loop"))
        case "sqlite":
            return BlockingRoute(folder)
        case "sqlite-awaiting":
            return AwaitingRoute(folder, request.getfixturevalue("loop"))
        case "sqlite-two-processes":
            return TwoProcesses(folder, request.getfixturevalue("process"))


@pytest.fixture
def folder():
    with quick_folder() as folder:
        yield Path(folder)


ROUTES = [
    "sqlite", "sqlite-awaiting", "sqlite-two-processes",
    *(pytest.param(name, marks=pytest.mark.postgres) for name in ("postgres", "postgres-awaiting")),
]  # fmt: skip


@pytest.fixture(params=ROUTES)
def route(request, folder):
    route = open_route(request.param, folder, request)
    yield route
    route.close()
    assert route.verified()
