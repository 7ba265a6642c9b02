"""PgBouncer before a server of the tests."""

import select

import psycopg
import pytest

from tests.cut_connection import Proxy
from tests.pgbouncer import PgBouncer
from tests.postgres import PostgresServer
from tests.servers.at_work import at_work_in

pytestmark = pytest.mark.faults


@pytest.fixture
def pooler(server):
    with PgBouncer(server, default_pool_size=1) as pooler:
        yield pooler
    assert at_work_in(pooler.folder) == []


def backend(connection):
    return connection.execute("SELECT pg_backend_pid()").fetchone()[0]


def test_two_clients_share_a_connection_by_the_transaction(server, pooler):
    with server.database(at=pooler.url) as url:
        one, other = (psycopg.connect(url, autocommit=True, prepare_threshold=None) for _ in range(2))
        with one, other:
            assert one.info.port == pooler.port
            assert backend(one) == backend(other)
            one.execute("SET lock_timeout = '7s'")
            assert other.execute("SHOW lock_timeout").fetchone() == ("7s",)


def test_its_clients_are_cut_off_when_it_is_killed_and_come_back_when_it_starts(pooler):
    with psycopg.connect(pooler.url(), autocommit=True) as connection:
        pooler.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    pooler.start()
    with psycopg.connect(pooler.url()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_who_asks_while_the_server_is_away_is_answered_soon_after_it_is_back():
    with PostgresServer() as server, PgBouncer(server) as pooler:
        server.kill()
        with psycopg.connect(pooler.url(), autocommit=True) as connection:
            connection.pgconn.send_query(b"SELECT 1")
            assert select.select([connection], [], [], 0.1)[0] == []
            server.start()
            assert select.select([connection], [], [], 5)[0] == [connection]
            assert [result.ntuples for result in iter(connection.pgconn.get_result, None)] == [1]


def test_a_proxy_stands_before_it_as_before_a_server(pooler):
    with Proxy(pooler) as proxy, psycopg.connect(proxy.url(), autocommit=True) as connection:
        proxy.cut_after(b"SELECT 7")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 7")
