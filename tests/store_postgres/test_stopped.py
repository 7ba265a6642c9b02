"""A process that is stopped, or cut off, within a transaction of ours keeps rows from others for a while only."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import relet
from relet.store.postgres import connect, engine
from relet.store.postgres.engine import PostgresStore
from relet.store.postgres.runner import PostgresRunner
from tests.pgbouncer import PgBouncer
from tests.postgres import PostgresServer
from tests.waiting import Gate, eventually

pytestmark = pytest.mark.postgres
MOST_S = 1


@pytest.fixture(params=["18", "15"], scope="module")
def server(request):
    with PostgresServer(request.param, tcp=True) as server:
        yield server


@pytest.fixture(params=["direct", "pooled"])
def url(request, server):
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(PgBouncer(server)).url if request.param == "pooled" else server.tcp_url
        yield stack.enter_context(server.database(at=at))


@pytest.fixture
def stopping(monkeypatch):
    """Who works in the thread stands still before its commit; to the server it looks as a stopped process does."""
    monkeypatch.setattr(connect, "TRANSACTION_S", MOST_S)
    reached, go_on, end = Gate(), Gate(), PostgresRunner.end

    def stand_still(self):
        end(self)
        if threading.current_thread().name == "stopped" and not reached.is_set():
            reached.set()
            go_on.pass_through()

    monkeypatch.setattr(PostgresRunner, "end", stand_still)

    @contextlib.contextmanager
    def stopped(verb):
        told = []

        def run():
            try:
                told.append(verb())
            except relet.Error as wrong:
                told.append(wrong)

        thread = threading.Thread(target=run, name="stopped")
        thread.start()
        reached.pass_through()
        yield told
        go_on.set()
        thread.join(20)

    return stopped


@pytest.mark.parametrize("concurrency", [None, 10])
def test_what_a_stopped_claim_holds_is_free_after_a_while(url, stopping, concurrency):
    with relet.connect(url) as db, relet.connect(url) as other:
        if concurrency:
            db.queue("q", concurrency=concurrency)
        db.submit("q", id="t")
        other.backend.store.is_hot = False
        with stopping(lambda: other.claim("q", ttl=30)) as told:
            eventually(lambda: claimed(db, "t"))
        assert told == [None], "it was undone, asked again, and the task is another's"
        assert db.verify().findings == []


def test_a_stopped_cancel_loses_no_lease_of_others(url, stopping):
    with relet.connect(url) as db, relet.connect(url) as other:
        db.submit("q", id="t")
        lease = db.claim("q", ttl=30)
        with stopping(lambda: other.cancel_many(queue="q", reason="by mistake")):
            with pytest.raises(relet.Unavailable):
                lease.renew()
            eventually(lambda: renewed(lease))
            lease.complete("in time")


def test_a_look_and_what_sends_much_may_take_longer(url, monkeypatch):
    monkeypatch.setattr(connect, "TRANSACTION_S", MOST_S)
    monkeypatch.setattr(engine, "TRANSACTION_S", MOST_S)
    slept, tries = [], []
    instants, once = PostgresRunner.instants, PostgresStore._once

    async def slow(self):
        if not slept:
            slept.append(self)
            self._cursor().execute(f"SELECT pg_sleep({2 * MOST_S})").fetchall()
        return await instants(self)

    def count(self, *given, **named):
        tries.append(given)
        return once(self, *given, **named)

    with relet.connect(url) as db:
        db.submit("q", id="t")
        monkeypatch.setattr(PostgresRunner, "instants", slow)
        monkeypatch.setattr(PostgresStore, "_once", count)
        assert db.task("t").state == "ready"
        assert (len(tries), len(slept)) == (1, 1), "it was not ended and asked again"
        slept.clear()
        monkeypatch.setattr(engine, "BYTES_A_SECOND", 1)
        assert db.submit("q", "words", id="much").created
        assert (len(tries), len(slept)) == (2, 1)


def test_a_renewal_waits_a_little_for_a_row_that_somebody_has_locked(url, monkeypatch):
    monkeypatch.setattr(engine, "LOCKED_S", 10)
    tries, again, until = [], Gate(), PostgresStore._until

    def count(self, *given, **named):
        tries.append(given)
        if len(tries) > 1:
            again.set()
        return until(self, *given, **named)

    with relet.connect(url) as db, relet.connect(url) as other, ThreadPoolExecutor() as threads:
        db.submit_many("q", [1, 2], ids=["a", "b"])
        leases = db.claim_many("q", 2, ttl=30)
        with other.backend.store.calls.borrowed(1) as mine, mine.transaction():
            mine.execute("SELECT 1 FROM relet.leases WHERE token = $1 FOR UPDATE", [leases[0].token])
            monkeypatch.setattr(PostgresStore, "_until", count)
            renewed = threads.submit(db.renew_many, leases)
            again.pass_through()
        assert [left > 0 for left in renewed.result(20)] == [True, True]
        assert len(tries[1][2].handles) == 1, "only what was locked is asked for again"


def claimed(db, task_id):
    try:
        lease = db.claim("q", ttl=30)
    except relet.Unavailable:
        return False
    return lease is not None and lease.task_id == task_id


def renewed(lease):
    with contextlib.suppress(relet.Unavailable):
        return lease.renew() > 0
    return False
