"""The proxy that does to connections what a network does."""

import contextlib
import select
import socket
import time
from types import SimpleNamespace

import psycopg
import pytest

from tests.cut_connection import Proxy
from tests.waiting import eventually


@pytest.fixture
def proxy(server):
    with Proxy(server) as proxy:
        yield proxy


@pytest.fixture
def connect(server, proxy):
    """Opens connections by way of the proxy, to a database with an empty table `kept`."""
    with server.database(at=proxy.url) as url, contextlib.ExitStack() as opened:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept (it int)")
        eventually(lambda: proxy.connections == 0)
        yield lambda **options: opened.enter_context(contextlib.closing(psycopg.connect(url, **options)))


def kept(connect):
    return connect().execute("SELECT count(*) FROM kept").fetchone()[0]


def is_readable(thing, within):
    return select.select([thing], [], [], within)[0] != []


def test_it_passes_everything_on_and_forgets_what_has_ended(connect, proxy):
    with connect() as connection:
        assert proxy.connections == 1
        long = "x" * 3_000_000
        assert connection.execute("SELECT %s::text", [long]).fetchone()[0] == long
    eventually(lambda: proxy.connections == 0)


def test_an_end_without_a_word_is_passed_on(proxy):
    with socket.create_connection(("127.0.0.1", proxy.port)):
        eventually(lambda: proxy.connections == 1)
    eventually(lambda: proxy.connections == 0)


def test_an_end_of_the_server_is_passed_on(connect, server):
    connection = connect()
    server.value("SELECT pg_terminate_backend(%s)", connection.info.backend_pid)
    assert is_readable(connection, 5)
    with pytest.raises(psycopg.errors.AdminShutdown):
        connection.execute("SELECT 1")


def test_a_cut_resets_the_client_and_the_server_lets_go(connect, proxy, server):
    connection = connect()
    backend = connection.info.backend_pid
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as seen:
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            seen.recv(1)
    assert proxy.connections == 0
    eventually(lambda: server.value("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", backend) == 0)
    assert kept(connect) == 0


def test_new_connections_are_dropped_while_old_ones_live(connect, proxy):
    connection = connect(autocommit=True)
    proxy.drop_new()
    with pytest.raises(psycopg.OperationalError):
        connect()
    assert connection.execute("SELECT 1").fetchone() == (1,)
    proxy.pass_on()
    assert kept(connect) == 0


@pytest.mark.slow
def test_a_black_hole_keeps_connections_open_and_answers_nobody(connect, proxy):
    connection = connect(autocommit=True)
    proxy.black_hole()
    connection.pgconn.send_query(b"INSERT INTO kept VALUES (1)")
    assert not is_readable(connection, 0.1)
    with pytest.raises(psycopg.errors.ConnectionTimeout):
        connect(connect_timeout=2)
    proxy.pass_on()
    assert is_readable(connection, 5)
    assert kept(connect) == 1


def test_of_a_black_hole_for_replies_requests_come_out(connect, proxy, server):
    connection = connect(autocommit=True)
    other = connect(autocommit=True)
    proxy.black_hole(requests=False)
    connection.pgconn.send_query(b"SELECT pg_advisory_lock(7)")
    eventually(lambda: server.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7") == 1)
    assert not is_readable(connection, 0.1)
    proxy.black_hole(replies=False)
    assert is_readable(connection, 5)
    other.pgconn.send_query(b"SELECT 1")
    assert not is_readable(other, 0.1)


def test_of_new_connections_that_fall_into_a_black_hole_the_server_hears_nothing_and_they_can_be_cut():
    server = socket.create_server(("127.0.0.1", 0))
    with server, Proxy(SimpleNamespace(port=server.getsockname()[1])) as proxy:
        proxy.black_hole()
        with socket.create_connection(("127.0.0.1", proxy.port)) as waiting:
            eventually(lambda: proxy.connections == 1)
            assert not is_readable(server, 0.1)
            proxy.cut()
            with pytest.raises(ConnectionResetError):
                waiting.recv(1)
        proxy.pass_on()
        with socket.create_connection(("127.0.0.1", proxy.port)):
            assert is_readable(server, 5)


def test_a_delay_is_added_in_both_directions(connect, proxy):
    connection = connect(autocommit=True)
    proxy.delay(0.1)
    began = time.monotonic()
    connection.execute("SELECT 1")
    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize(("how", "there"), [("cut_after", 1), ("cut_before", 0)])
@pytest.mark.parametrize("rows", [1, 20_000])
def test_a_commit_whose_outcome_nobody_was_told(connect, proxy, how, there, rows):
    connection = connect()
    connection.execute("INSERT INTO kept SELECT generate_series(1, %s)", [rows])
    getattr(proxy, how)()
    with pytest.raises(psycopg.OperationalError):
        connection.commit()
    assert proxy.fired.wait(5)
    assert kept(connect) == there * rows
    other = connect()  # the trigger was for one connection
    other.execute("SELECT 1")
    other.commit()


def test_any_bytes_are_a_trigger_and_those_of_the_past_are_none(connect, proxy):
    connection = connect(autocommit=True)
    connection.execute("INSERT INTO kept VALUES (1)")
    proxy.cut_after(b"INSERT")
    assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError):
        connection.execute("INSERT INTO kept VALUES (2)")
    assert kept(connect) == 2


def test_what_is_sent_together_is_cut_when_all_of_it_is_done(connect, proxy):
    connection = connect(autocommit=True)
    proxy.cut_after()
    with pytest.raises(psycopg.OperationalError):
        connection.execute(
            "BEGIN; INSERT INTO kept VALUES (1); SELECT repeat('x', 99999); SELECT pg_sleep(0.2); COMMIT"
        )
    assert proxy.fired.wait(5)
    assert kept(connect) == 1


def test_a_pipeline_is_cut_when_all_of_it_is_done(connect, proxy):
    connection = connect(autocommit=True)
    proxy.cut_after()
    with pytest.raises(psycopg.OperationalError), connection.pipeline(), connection.transaction():
        connection.cursor().executemany("INSERT INTO kept VALUES (%s) RETURNING repeat('x', 9999)", [[1]] * 9)
    assert proxy.fired.wait(5)
    assert kept(connect) == 9


def test_inside_a_transaction_a_reply_ends_otherwise(connect, proxy):
    connection = connect()
    connection.execute("SELECT 1")
    proxy.cut_after(b"INSERT", status=b"T")
    with pytest.raises(psycopg.OperationalError):
        connection.execute("INSERT INTO kept VALUES (1)")
    assert proxy.fired.wait(5)
    assert kept(connect) == 0


def test_what_is_said_twice_arrives_over_two_connections_up_to_the_reply_and_is_answered_once():
    server = socket.create_server(("127.0.0.1", 0))
    with server, Proxy(SimpleNamespace(port=server.getsockname()[1])) as proxy, contextlib.ExitStack() as opened:
        client = opened.enter_context(socket.create_connection(("127.0.0.1", proxy.port)))
        lines = [opened.enter_context(server.accept()[0])]
        client.sendall(b"before")
        assert lines[0].recv(100) == b"before"
        proxy.say_twice(b"POST")
        client.sendall(b"POST head")
        lines.append(opened.enter_context(server.accept()[0]))
        assert [line.recv(100) for line in lines] == [b"POST head"] * 2
        client.sendall(b"body")
        assert [line.recv(100) for line in lines] == [b"body"] * 2
        lines[0].sendall(b"answer")
        assert client.recv(100) == b"answer"
        client.sendall(b"after")
        assert lines[0].recv(100) == b"after"
        assert not proxy.fired.is_set()
        lines[1].sendall(b"another answer")
        assert proxy.fired.wait(5)
        assert lines[1].recv(100) == b""
        assert not is_readable(client, 0.1)
