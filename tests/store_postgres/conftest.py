"""A database for each test, found empty."""

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import relet
from relet.store.postgres.connect import WITHOUT
from tests.cut_connection import Proxy
from tests.postgres import PostgresServer
from tests.postgres_suites.shared import FORBIDDEN
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


@pytest.fixture
def db(database):
    with relet.connect(database) as db:
        yield db


@pytest.fixture(scope="module")
def tcp_server():
    """One that is reached by a port, as a proxy before it needs."""
    with PostgresServer(tcp=True) as server:
        yield server


@pytest.fixture
def proxy(tcp_server):
    with Proxy(tcp_server) as proxy:
        yield proxy


@pytest.fixture(params=["read committed", "serializable", "bare"])
def isolated(request, database, monkeypatch):
    """The same, for whatever transactions are isolated by, and for a server that can do little."""
    if request.param == "bare":
        monkeypatch.setenv(WITHOUT, FORBIDDEN)
    else:
        alter(database, f"SET default_transaction_isolation = '{request.param}'")
    yield database
    alter(database, "RESET default_transaction_isolation")


def alter(url, how):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {conninfo_to_dict(url)['dbname']} {how}")


@pytest.fixture
def pair(isolated):
    """Two clients of one store, who have written: the first try of one who has not is undone, and asked anew."""
    with relet.connect(isolated) as one, relet.connect(isolated) as other:
        for each in (one, other):
            each.sweep()
        yield one, other
