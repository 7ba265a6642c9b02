"""Servers that tests of this folder have in common; what breaks a server has one of its own."""

import pytest

from tests.postgres import PostgresServer


@pytest.fixture(scope="session")
def server():
    with PostgresServer(tcp=True) as server:
        yield server
