"""Three routes to a SQLite store; the suite runs over each of them."""

from pathlib import Path

import pytest

from tests.conformance.awaiting import AwaitingRoute, Loop
from tests.conformance.blocking import BlockingRoute
from tests.conformance.desk import Process
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


def open_route(name, folder, request):
    match name:
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


@pytest.fixture(params=["sqlite", "sqlite-awaiting", "sqlite-two-processes"])
def route(request, folder):
    route = open_route(request.param, folder, request)
    yield route
    route.close()
    assert route.verified()
