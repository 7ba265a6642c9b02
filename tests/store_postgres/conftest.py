"""A database for each test, found empty."""

import pytest

from tests.store_postgres.databases import Databases


@pytest.fixture(scope="session")
def databases():
    databases = Databases()
    yield databases
    databases.close()


@pytest.fixture
def database(databases):
    with databases.emptied() as url:
        yield url
