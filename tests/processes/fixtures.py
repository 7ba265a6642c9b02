"""What tests with processes start from: a store in a file or a database, and a way to start programs that use it."""

import pytest

import relet
from relet.testing.clock import Clock
from relet.testing.stores import open_store
from tests.processes.actor import Actor
from tests.processes.outside import Outside
from tests.processes.program import Programs


@pytest.fixture
def database():
    """The URL of an empty database where a test runs over a server; None over SQLite."""


@pytest.fixture
def url(tmp_path, database):
    return database or f"sqlite:///{tmp_path / 'work.db'}"


@pytest.fixture
def db(url):
    with relet.connect(url, holder="test") as client:
        yield client


@pytest.fixture
def steered(tmp_path, database):
    """A store whose clock stands still; actors at its folder read the same clock."""
    with open_store(tmp_path, Clock(tmp_path / "clock"), holder="test", url=database) as client:
        yield client


@pytest.fixture
def start(tmp_path):
    """Start a program of the tests; what is left of it is killed when the test ends."""
    with Programs(tmp_path) as programs:
        yield programs.start


@pytest.fixture
def actor(start, tmp_path, database):
    """A client of the steered store in a process of its own, that does what it is told."""

    def actor(**environment):
        return Actor(start, tmp_path, environment | ({"DATABASE": database} if database else {}))

    return actor


@pytest.fixture
def outside(start, steered, tmp_path):
    """A service in a process of its own that counts what it is asked for, and workers whose effects call it."""
    return Outside(start, steered, tmp_path)
