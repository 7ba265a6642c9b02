"""Servers that tests of this folder have in common; what breaks a server has one of its own."""

from pathlib import Path

import pytest

from tests.postgres import PostgresServer


def pytest_collection_modifyitems(items):
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.postgres)


@pytest.fixture(scope="session")
def server():
    with PostgresServer(tcp=True) as server:
        yield server
