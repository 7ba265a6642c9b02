"""What tests of workers start from: a store in a file, on the real clock, and an app without handlers."""

import pytest

import relet
from tests.processes.program import Programs


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'work.db'}"


@pytest.fixture
def db(url):
    with relet.connect(url) as client:
        yield client


@pytest.fixture
def app():
    return relet.App()


@pytest.fixture
def start(tmp_path):
    """Start a program of the tests; what is left of it is killed when the test ends."""
    with Programs(tmp_path) as programs:
        yield programs.start
