"""Three routes to a SQLite store; the suite runs over each of them."""

import tempfile
from pathlib import Path

import pytest

from tests.conformance.awaiting import AwaitingRoute, Loop
from tests.conformance.blocking import BlockingRoute
from tests.conformance.desk import Process
from tests.conformance.two_processes import TwoProcesses


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
    # In memory where the machine has such a folder: thousands of stores, and none is about what a disk keeps.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="relet-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(params=["sqlite", "sqlite-awaiting", "sqlite-two-processes"])
def route(request, folder):
    route = open_route(request.param, folder, request)
    yield route
    route.close()
