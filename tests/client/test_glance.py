"""glance: what a worker sees that has nothing to do, and for how long it may look away."""

import pytest

from relet.core.rules.glance import Glance, Glanced

NOTHING = Glanced(ready=False, next_ms=None)


@pytest.fixture
def glance(relet_db):
    def look(*queues, kinds=None):
        return relet_db.backend.call(Glance(queues=list(queues or ["q"]), kinds=kinds))

    return look


def test_nothing_there_is_nothing_to_come(relet_db, glance):
    assert glance() == NOTHING
    relet_db.submit("other")
    assert glance() == NOTHING
    assert glance("q", "other").ready


def test_a_ready_task_of_a_kind_that_is_asked_for(relet_db, glance):
    relet_db.submit("q", kind="a")
    assert glance().ready
    assert glance(kinds=["a", "b"]).ready
    assert glance(kinds=["b"]) == NOTHING


@pytest.mark.parametrize("delay", ["30s", "2h"])
def test_a_delayed_task_in_time(relet_db, glance, delay):
    task = relet_db.submit("q", delay=delay)
    seen = glance()
    assert not seen.ready
    relet_db.clock.advance(seen.next_ms / 1_000 - 0.001)
    assert glance() == Glanced(ready=False, next_ms=1)
    relet_db.clock.advance("1ms")
    assert glance().ready
    assert relet_db.claim("q").task_id == task.id


def test_a_lease_that_lapses_whosoever_it_is(relet_db, glance):
    relet_db.submit("other")
    lease = relet_db.claim("other", ttl=10)
    assert glance() == Glanced(ready=False, next_ms=10_000)
    relet_db.clock.advance(9)
    lease.renew()
    assert glance() == Glanced(ready=False, next_ms=1_000), "it is looked at when it might have lapsed"
    relet_db.clock.advance(2)
    assert glance() == Glanced(ready=False, next_ms=8_000), "and was renewed: until then"
    relet_db.clock.advance(8)
    assert glance().ready
    relet_db.sweep()
    assert glance("other").ready


def test_a_busy_key_until_its_lease_ends(relet_db, glance):
    relet_db.submit_many("q", [1, 2], exclusive="key")
    lease = relet_db.claim("q", ttl=10)
    assert glance() == Glanced(ready=False, next_ms=10_000)
    lease.complete()
    assert glance().ready


def test_a_paused_queue_has_nothing_and_a_finished_task_neither(relet_db, glance):
    relet_db.submit("q")
    relet_db.submit("q", delay=5)
    relet_db.queue("q", paused=True)
    assert glance() == NOTHING
    relet_db.queue("q", paused=False)
    relet_db.claim("q").complete()
    assert glance() == Glanced(ready=False, next_ms=5_000)


def test_a_wait_whose_time_runs_out(relet_db, glance):
    relet_db.submit("q")
    relet_db.claim("q").park("ok", timeout=7)
    assert glance() == Glanced(ready=False, next_ms=7_000)
