"""No connection is left on the server: heartbeats go by one that is there. And what a lost one leaves on stderr."""

import contextlib
import gc
import logging
import sys

import psycopg
import pytest

import relet
from tests.cut_connection import Proxy
from tests.postgres import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture
def crowded():
    """A server that lets in few, all of whose connections are taken once `fill` was called."""
    with contextlib.ExitStack() as stack, PostgresServer(max_connections=8) as server:
        server.fill = lambda: fill(stack, server)
        yield server


def fill(stack, server):
    with contextlib.suppress(psycopg.OperationalError):
        while True:
            stack.enter_context(psycopg.connect(server.url()))


def test_a_heartbeat_borrows_a_connection_where_none_can_be_opened(crowded):
    with relet.connect(crowded.url()) as db:
        db.submit("q", id="t")
        lease = db.claim("q", ttl=30)
        assert db.backend.store.beats.open == 0
        crowded.fill()
        first = db.task("t").last_heartbeat
        assert lease.renew() > 0
        assert db.task("t").last_heartbeat > first
        store = db.backend.store
        assert (store.beats.open, store.calls.open, len(store.calls._idle)) == (0, 1, 1)
        lease.complete()


def test_a_heartbeat_that_finds_none_at_all_says_so(crowded):
    with relet.connect(crowded.url()) as db:
        db.submit("q", id="t")
        lease = db.claim("q", ttl=1)
        crowded.fill()
        calls = db.backend.store.calls
        with calls.borrowed(1), pytest.raises(relet.Unavailable) as told:
            db.backend.store.beats._found(0.1)
        assert told.value.code == "RELET-UNREACHABLE"
        assert lease.task_id == "t"


@pytest.mark.parametrize("fault", ["cut", "black_hole", "cut_after", "cut_before", "no replies", "late"])
def test_a_connection_that_is_lost_writes_nothing_into_the_programs_log_or_on_stderr(caplog, monkeypatch, fault):
    caplog.set_level(logging.WARNING)
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    with PostgresServer(tcp=True) as server, Proxy(server) as proxy, relet.connect(proxy.url()) as db:
        db.submit("q")
        silent = {"no replies": lambda: proxy.black_hole(requests=False), "late": proxy.black_hole}
        strike = silent[fault] if fault in silent else getattr(proxy, fault)
        strike()
        with contextlib.suppress(relet.Error, psycopg.Error), db.backend.store.calls.borrowed(1) as line:
            line.expect_answers(0.2)
            with line.pipeline():
                for n in range(3):
                    line.execute("SELECT 'COMMIT', $1::bigint", [n])
                if fault != "late":
                    line.execute("SELECT 1").fetchone()
                line.answer_by = 0.0
        with contextlib.suppress(relet.Error):
            db.submit("q", id="again")
        proxy.cut()
        gc.collect()
        proxy.pass_on()
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == []
    assert [str(one.exc_value) for one in ignored] == []


def test_what_the_driver_says_of_other_connections_is_heard(caplog):
    caplog.set_level(logging.WARNING)
    with PostgresServer(tcp=True) as server, Proxy(server) as proxy:
        mine = psycopg.connect(proxy.url(), autocommit=True)
        with contextlib.suppress(psycopg.Error), mine.pipeline():
            mine.execute("SELECT 1")
            proxy.cut()
            raise psycopg.OperationalError("something else")
    assert "error ignored terminating" in caplog.text
