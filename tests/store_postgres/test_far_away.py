"""A server at some distance: how long it takes to get there is not what somebody's patience is for."""

import time

import pytest

import relet
from relet.client import asks
from relet.client.renewal import renewal
from relet.store.postgres import line
from tests.cut_connection import Proxy
from tests.postgres import PostgresServer
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
EACH_WAY_S = [0.005, 0.03, 0.06]


@pytest.fixture(scope="module")
def server():
    with PostgresServer(tcp=True) as server:
        yield server


@pytest.fixture(params=EACH_WAY_S)
def far(request, server):
    """A client whose server is so far away."""
    with Proxy(server) as proxy, server.database(at=proxy.url) as url:
        relet.connect(url).close()  # the tables are made at once
        proxy.delay(request.param)
        with relet.connect(url) as db:
            yield db
            proxy.pass_on()


def test_who_waits_for_no_lock_waits_for_the_answer(far):
    far.submit_many("q", [1, 2, 3, 4])
    for _ in range(2):
        assert len(far.backend.call(asks.claim("q", "h", n=2), patience_ms=1)) == 2


def test_a_worker_takes_what_is_there(far):
    app = relet.App()
    app.task("work")(lambda run: "done")
    with app.worker(far):
        tasks = far.submit_many("work", [None] * 3)
        assert [far.result(task.id, wait=15) for task in tasks] == ["done"] * 3


def test_a_short_lease_is_kept(far):
    task = far.submit("q")
    with far.claim("q", ttl=4) as lease:
        first = far.task(task.id).last_heartbeat
        eventually(lambda: far.task(task.id).last_heartbeat > first)
        eventually(lambda: lease.status == "held")
        lease.complete()


def test_a_beat_with_little_patience_is_answered_too(far):
    far.submit("q")
    with far.claim("q", ttl=60) as lease:
        lease.renew()
        (renewed,) = far.backend.call(renewal([lease.belief.grant.handle]), patience_ms=1)
        assert renewed.left_ms > 0
        lease.complete()


def test_the_way_is_no_excuse_to_wait_for_a_lock(server):
    with server.database() as url, relet.connect(url) as db, relet.connect(url) as other:
        db.queue("q", concurrency=5)
        db.submit("q")
        with other.backend.store.calls.borrowed(1) as mine, mine.transaction():
            mine.execute("SELECT 1 FROM relet.queues FOR UPDATE")
            began = time.monotonic()
            with pytest.raises(relet.Unavailable) as told:
                db.backend.call(asks.claim("q", "h", n=1), patience_ms=1)
            assert time.monotonic() - began < 1
            assert told.value.code == "RELET-BUSY"


def test_a_silent_server_is_given_up_in_time_by_one_without_patience(server):
    with Proxy(server) as proxy, server.database(at=proxy.url) as url, relet.connect(url) as db:
        db.submit("q")
        proxy.black_hole()
        began = time.monotonic()
        with pytest.raises(relet.Unavailable):
            db.backend.call(asks.claim("q", "h", n=1), patience_ms=1)
        assert time.monotonic() - began < 2 * line.SILENCE_S
        proxy.pass_on()
