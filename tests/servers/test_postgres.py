"""PostgreSQL servers of the tests: both versions, every way to end one, and what is left of it."""

import select
import signal
import subprocess
import time

import psycopg
import pytest
from psycopg import errors

from tests.postgres import FAST, IMMEDIATE, PostgresServer, programs
from tests.servers.at_work import at_work_in, stands_still
from tests.servers.unprivileged import installed

WHEEL, SYSTEM = "18", pytest.param("15", marks=pytest.mark.faults)
HOUR_S = 3_600


@pytest.fixture(params=[WHEEL, SYSTEM])
def alone(request):
    """A server that a test may break."""
    with PostgresServer(request.param, tcp=True) as server:
        server.version = request.param
        yield server


def test_it_is_the_version_that_was_asked_for_on_a_socket_and_on_a_port(alone):
    assert alone.value("SHOW server_version").partition(".")[0] == alone.version
    with psycopg.connect(alone.tcp_url()) as connection:
        assert connection.info.port == alone.port
    with psycopg.connect(alone.url()) as connection:
        assert connection.info.host == str(alone.folder)


@pytest.mark.parametrize("how", [FAST, IMMEDIATE, signal.SIGKILL], ids=lambda how: how.name)
def test_what_was_committed_is_there_after_a_restart_on_the_same_port(alone, how):
    alone.execute("CREATE TABLE kept (it int); INSERT INTO kept VALUES (7)")
    if how is signal.SIGKILL:
        alone.kill()
        alone.start()
    else:
        alone.restart(how)
    assert alone.value("SELECT it FROM kept") == 7
    assert ("was not properly shut down" in alone.log) == (how is not FAST)


def test_a_killed_server_leaves_no_process(alone):
    with psycopg.connect(alone.tcp_url()) as connection:
        assert len(at_work_in(alone.folder)) > 3
        alone.kill()
        assert at_work_in(alone.folder) == []
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        alone.value("SELECT 1")


def test_a_frozen_server_answers_nothing_and_then_everything(alone):
    with psycopg.connect(alone.tcp_url(), autocommit=True) as connection:
        alone.freeze()
        assert all(stands_still(pid) for pid in at_work_in(alone.folder))
        connection.pgconn.send_query(b"SELECT 1")
        assert select.select([connection], [], [], 0.1)[0] == []
        alone.thaw()
        assert select.select([connection], [], [], 5)[0] == [connection]
        assert [result.ntuples for result in iter(connection.pgconn.get_result, None)] == [1]


@pytest.mark.parametrize("state", ["running", "frozen", "killed"])
def test_the_end_of_the_block_leaves_nothing_in_whatever_state_it_was(state):
    with PostgresServer() as server:
        owned = (server.folder / "data" / "postmaster.pid").read_text().split()
        if state == "frozen":
            server.freeze()
        if state == "killed":
            server.kill()
    assert at_work_in(server.folder) == []
    assert not server.folder.exists()
    segments = subprocess.run(["ipcs", "-m"], capture_output=True, text=True, check=True).stdout
    assert f"0x{int(owned[-3]):08x} {owned[-2]} " not in segments


def test_a_server_that_does_not_start_says_why_and_leaves_nothing():
    server = PostgresServer(max_connections="none")
    with pytest.raises(AssertionError, match=r"pg ended: .*max_connections"), server:
        pytest.fail("it started")
    assert at_work_in(server.folder) == []
    assert not server.folder.exists()


@pytest.mark.slow
def test_servers_are_copies_of_one_unless_an_identity_of_their_own_is_asked_for(server):
    identity = "SELECT system_identifier FROM pg_control_system()"
    with PostgresServer() as copy, PostgresServer(own_identity=True) as other:
        assert copy.value(identity) == server.value(identity) != other.value(identity)


def test_a_new_database_is_given_by_whichever_way_is_asked_for_and_dropped(server):
    with (
        server.database() as first, server.database(at=server.tcp_url) as second,
        psycopg.connect(first) as one, psycopg.connect(second) as other,
    ):  # fmt: skip
        assert one.info.dbname != other.info.dbname
        assert (one.info.host, other.info.host) == (str(server.folder), "127.0.0.1")
    assert server.value("SELECT count(*) FROM pg_database WHERE datname LIKE 'test\\_%%'") == 0


def test_what_is_missing_is_named_with_its_package():
    with pytest.raises(AssertionError, match=r"needs PostgreSQL 9 → sudo apt-get install -y postgresql-9$"):
        programs("9")
    with pytest.raises(AssertionError, match=r"needs no-such-program → .* none-such$"):
        installed("no-such-program", "none-such")


def is_off_by(connection, offset_s):
    before = time.time()
    told = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()[0]
    return before - 0.01 <= told - offset_s <= time.time() + 0.01


@pytest.mark.faults
@pytest.mark.parametrize("version", ["18", "15"])
def test_its_wall_clock_is_stepped_while_it_runs_and_its_timeouts_stay_right(version):
    with PostgresServer(version, steered=True) as server:
        old, new = (psycopg.connect(server.url(), autocommit=True) for _ in range(2))
        with old, new, old.transaction():
            old.execute("SELECT pg_advisory_xact_lock(1)")
            for offset_s in (0, HOUR_S, 0, -HOUR_S, 0.5):
                server.clock.step_to(offset_s)
                assert is_off_by(old, offset_s)
                assert is_off_by(new, offset_s)
                new.execute("SET lock_timeout = '100ms'; SET statement_timeout = '10s'")
                began = time.monotonic()
                with pytest.raises(errors.LockNotAvailable):
                    new.execute("SELECT pg_advisory_xact_lock(1)")
                assert 0.09 < time.monotonic() - began < 5
