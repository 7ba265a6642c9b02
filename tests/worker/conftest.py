"""What tests of workers start from: a store in a file, on the real clock, and an app without handlers."""

import pytest

import relet
from tests.processes.fixtures import database, db, start, url

__all__ = ["app", "database", "db", "start", "url"]


@pytest.fixture
def app():
    return relet.App()
