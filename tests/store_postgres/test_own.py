"""A transaction of a user's own holds its locks for two seconds at most, whatever happens to its program."""

import signal
import time
from pathlib import Path

import psycopg
import pytest

import relet
from tests.cut_connection import Proxy
from tests.postgres import PostgresServer
from tests.processes.fixtures import start  # noqa: F401 - a fixture

pytestmark = pytest.mark.postgres
STOPPED = Path(__file__).parent / "programs" / "stopped_in_transaction.py"
CAP_S = 2.0
LATE_S = 2.0


@pytest.fixture
def own(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 0 AS n")
        yield connection
        connection.execute("DROP TABLE mine")


def test_the_server_frees_what_a_stopped_program_has_locked(database, own, start):  # noqa: F811
    with relet.connect(database) as db:
        db.submit("work")
        program = start(STOPPED, database)
        assert program.line() == "inside"
        program.send(signal.SIGSTOP)
        began = time.monotonic()
        own.execute("SET statement_timeout = '20s'")
        own.execute("UPDATE mine SET n = 10")
        assert time.monotonic() - began < CAP_S + LATE_S
        program.send(signal.SIGCONT)
        program.tell("go on")
        assert program.line() == "RELET-TRANSACTION-LONG"
        assert program.wait() == 0
        assert own.execute("SELECT n FROM mine").fetchone() == (10,)
        # Its lease is not touched by it: nobody else was kept waiting for long enough.
        assert db.tasks(queue="work")[0].attempt == 1


def test_a_statement_that_runs_too_long_is_ended_too(database, own):
    with relet.connect(database) as db:
        db.submit("work")
        lease = db.claim("work", ttl=60)
        began = time.monotonic()

        def dawdle():
            with lease.transaction() as connection:
                connection.execute("UPDATE mine SET n = 1")
                connection.execute("SELECT pg_sleep(60)")

        with pytest.raises(relet.Unavailable) as told:
            dawdle()
        assert told.value.code == "RELET-TRANSACTION-LONG"
        assert time.monotonic() - began < CAP_S + LATE_S
        assert own.execute("SELECT n FROM mine").fetchone() == (0,)
        lease.complete()


def test_a_transaction_on_a_dead_line_ends_in_time():
    with PostgresServer(tcp=True) as server, Proxy(server) as proxy, relet.connect(proxy.url()) as db:
        server.execute("CREATE TABLE mine AS SELECT 0 AS n")
        db.submit("work")
        lease = db.claim("work", ttl=60)
        began = time.monotonic()

        def ask_in_vain():
            with lease.transaction() as connection:
                connection.execute("UPDATE mine SET n = 1")
                proxy.black_hole()
                connection.execute("UPDATE mine SET n = 2")

        with pytest.raises(relet.Unavailable):
            ask_in_vain()
        assert time.monotonic() - began < 2 * CAP_S + LATE_S
        server.execute("UPDATE mine SET n = 10")
        proxy.cut()
        proxy.pass_on()
        lease.complete()
        assert server.value("SELECT n FROM mine") == 10
