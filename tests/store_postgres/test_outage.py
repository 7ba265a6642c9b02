"""A server that was started anew, or a store that was put back from a dump: all is live, and no token comes twice."""

import subprocess

import psycopg
import pytest

import relet
from relet.store.postgres.connect import WITHOUT, _knows_its_run, connect
from tests.postgres import IMMEDIATE, PostgresServer, programs, reachable
from tests.store_postgres.threads import all_at_once
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
N = 55
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


class Sink:
    """Somebody else's system that takes nothing from below what it has seen."""

    def __init__(self):
        self.seen = 0

    def take(self, token):
        if token < self.seen:
            return False
        self.seen = token
        return True


@pytest.fixture
def server():
    with PostgresServer() as server:
        yield server


def granted(db, n):
    """The tokens of so many new grants."""
    db.submit_many("work", list(range(n)))
    return [lease.token for lease in db.claim_many("work", n, ttl=60)]


def outages(url):
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT count(*) FROM relet.events WHERE kind = 'outage'").fetchone()[0]


def dump(url):
    done = subprocess.run([reachable(programs()) / "pg_dump", "--schema=relet", url], capture_output=True, check=True)
    return done.stdout.decode()


def put_back(url, text):
    """As psql does it: statement by statement, with the rows of each table after its COPY."""
    done = subprocess.run(
        [reachable(programs()) / "psql", "-q", "-v", "ON_ERROR_STOP=1", url],
        input=text, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("how", ["anew", "after a crash"])
def test_a_restart_extends_what_was_held_and_tokens_go_on(server, how):
    with relet.connect(server.url()) as db:
        before = granted(db, 3)
        db.submit("held")
        lease = db.claim("held", ttl=2)
        server.restart(*([IMMEDIATE] if how == "after a crash" else []))
        known = outages(server.url())
        after = granted(db, 3)
        assert min(after) > max(before)
        assert outages(server.url()) == known + 1
        assert lease.renew() > 0
        assert db.backend.verify().findings == []


def test_the_first_run_of_a_new_store_is_no_outage(server):
    with relet.connect(server.url()) as db:
        db.submit("q", id="t")
        assert db.claim("q").token >> 32 > 0, "its tokens begin in an epoch of their own all the same"
    assert outages(server.url()) == 0


def test_a_restart_is_settled_once_however_many_notice_it(server):
    clients = [relet.connect(server.url()) for _ in range(4)]
    for client in clients:
        client.submit("work")
    known = outages(server.url())
    server.restart(IMMEDIATE)

    def let_them_settle():
        with psycopg.connect(server.url()) as first:
            first.execute("SELECT 1 FROM relet.meta FOR UPDATE")
            eventually(lambda: server.value(WAITING) == len(clients))

    all_at_once(let_them_settle, *(lambda client=client: client.submit("work") for client in clients))
    assert outages(server.url()) == known + 1
    for client in clients:
        client.close()


def test_a_lease_whose_time_ran_out_while_nobody_could_ask_is_live_for_a_ttl(server):
    with relet.connect(server.url()) as db:
        task = db.submit("work")
        lease = db.claim("work", ttl=0.5)
        server.stop()
        server.start()
        assert db.claim("work") is None
        taken = db.claim("work", wait=5)
        assert (taken.task_id, taken.attempt) == (task.id, 1), "nobody was at fault"
        assert taken.token > lease.token


def test_pg_08_a_dump_put_back_into_another_database_goes_on_above_all_tokens(server):
    sink = Sink()
    with relet.connect(server.url()) as db:
        early = granted(db, 40)
        kept = dump(server.url())
        late = granted(db, N - len(early))
    assert all(sink.take(token) for token in early + late)
    with server.database() as elsewhere:
        put_back(elsewhere, kept)
        with relet.connect(elsewhere) as db:
            fresh = granted(db, 3)
            assert min(fresh) > max(early + late)
            assert all(sink.take(token) for token in fresh)
            assert not any(sink.take(token) for token in late)
            assert db.backend.verify().findings == []


def test_pg_08_a_dump_put_back_in_the_same_place_goes_on_above_all_tokens_each_time(server):
    """Under the feet of a client that goes on; and again, after the server was started some times meanwhile."""
    url = server.url()
    with relet.connect(url) as db:
        ever = granted(db, 10)
        kept = dump(url)
        for restarts in range(3):
            ever += granted(db, 5)
            for _ in range(restarts):
                server.restart(IMMEDIATE)
                ever += granted(db, 5)
            server.execute("DROP SCHEMA relet CASCADE")
            put_back(url, kept)
            fresh = granted(db, 5)
            assert min(fresh) > max(ever)
            ever += fresh
        assert len(set(ever)) == len(ever)
        assert ever == sorted(ever)
        assert db.backend.verify().findings == []


def test_a_database_put_back_from_a_copy_of_it_goes_on_above_all_tokens(server):
    """No restart, no dump: a copy that the server made has the files of its original by the same numbers."""
    with server.database() as url:
        name = url.partition("@/")[2].partition("?")[0]
        with relet.connect(url) as db:
            granted(db, 5)
        server.execute(f"CREATE DATABASE kept TEMPLATE {name}")
        with relet.connect(url) as db:
            ever = granted(db, 5)
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")
        server.execute(f"ALTER DATABASE kept RENAME TO {name}")
        with relet.connect(url) as db:
            assert min(granted(db, 5)) > max(ever)
            assert db.backend.verify().findings == []


def test_a_holder_whose_grant_was_undone_by_putting_back_a_dump_is_told(server):
    url = server.url()
    with relet.connect(url) as db:
        db.submit("work")
        kept = dump(url)
        lease = db.claim("work", ttl=60)
        server.execute("DROP SCHEMA relet CASCADE")
        put_back(url, kept)
        with pytest.raises(relet.LeaseLost):
            lease.complete("too late")
        assert db.claim("work").token > lease.token


def test_a_client_that_cannot_tell_the_run_ends_no_takeover_of_those_who_can(server, monkeypatch):
    """It takes what is written for true, and writes it where a crash has left nothing."""
    monkeypatch.setenv(WITHOUT, "run")
    blind = relet.connect(server.url())
    monkeypatch.delenv(WITHOUT)
    with blind, relet.connect(server.url()) as seeing:
        blind.submit("work")
        dead = blind.claim("work", ttl=0.3)

        def taken():
            for client in (blind, seeing):
                client.submit("other")
            return seeing.claim("work", ttl=60)

        assert eventually(taken).token > dead.token
        known = outages(server.url())
        assert known <= 1, "he who can tell may find what the other one wrote"
        server.restart(IMMEDIATE)
        for client in (blind, seeing, blind, seeing):
            client.submit("other")
        assert known < outages(server.url()) <= known + 2


def test_what_keeps_a_server_from_answering_is_not_taken_for_an_answer(server):
    url = server.url()
    with connect(url, "here") as connection:
        assert _knows_its_run(connection)
        connection.execute("BEGIN")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            _knows_its_run(connection)
    server.execute("CREATE ROLE lesser LOGIN")
    server.execute("REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC")
    with connect(url.replace("postgres@", "lesser@"), "here") as connection:
        assert not _knows_its_run(connection)
