"""Limits of a queue hold while they are set, and while tasks are claimed by name; and no knob that is set is lost."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import relet
from relet.store.postgres.tx import PostgresTx
from tests.store_postgres.stops import stops, until_waiting

pytestmark = pytest.mark.postgres
TTL = 60
LIMITS = {"concurrency": 1}, {"rate": "1/h"}


@pytest.mark.parametrize("limit", LIMITS, ids=["concurrency", "rate"])
def test_two_claims_by_id_at_once_stay_within_a_limit(pair, isolated, monkeypatch, limit):
    db, other = pair
    db.queue("q", **limit)
    db.submit_many("q", [1, 2], ids=["one", "two"])
    with stops(monkeypatch) as made, ThreadPoolExecutor() as threads:
        first = made.before_commit()
        first.begins(db.claim, task_id="one", ttl=TTL)
        second = threads.submit(other.claim, task_id="two", ttl=TTL)
        until_waiting(isolated)
        first.goes_on()
        assert first.future.result(20)
        assert second.result(20) is None


def test_a_verb_that_needs_no_limit_waits_for_none(pair, database):
    db, other = pair
    db.queue("q", concurrency=1)
    db.submit_many("q", [1, 2], ids=["one", "two"])
    lease = db.claim(task_id="one", ttl=TTL)
    with psycopg.connect(database) as mine:
        mine.execute("SELECT 1 FROM relet.queues FOR UPDATE")
        lease.save(1)
        lease.complete(1)
        other.submit("q", 3)
        other.cancel("two")
        assert other.queue("q").concurrency == 1


@pytest.mark.parametrize("known", [True, False])
def test_knobs_that_are_set_at_once_are_all_set(pair, monkeypatch, known):
    db, other = pair
    if known:
        db.queue("q", ttl="30s")
    with stops(monkeypatch) as made:
        slow = made.before(PostgresTx, "put_queue")
        slow.begins(db.queue, "q", rate="10/s")
        other.queue("q", paused=True)
        slow.goes_on()
        slow.future.result(20)
    found = other.queue("q")
    assert (found.paused, found.rate, found.ttl_ms) == (True, 10, 30_000 if known else None)


CLAIMS = {
    "two queues": lambda db: db.claim(["q", "other"], ttl=TTL),
    "by id": lambda db: db.claim(task_id="one", ttl=TTL),
}


@pytest.mark.parametrize("verb", CLAIMS)
def test_claims_that_have_not_seen_a_limit_are_counted_by_it(pair, isolated, monkeypatch, verb):
    db, other = pair
    db.submit_many("q", [1, 2, 3], ids=["one", "two", "three"])
    with stops(monkeypatch) as made, ThreadPoolExecutor() as threads, relet.connect(isolated) as third:
        third.sweep()
        early = made.before_commit()
        early.begins(CLAIMS[verb], db)
        limited = threads.submit(other.queue, "q", concurrency=1)
        until_waiting(isolated)
        late = threads.submit(third.claim, "q", ttl=TTL)
        until_waiting(isolated, 2)
        early.goes_on()
        assert early.future.result(20).task_id == "one"
        assert limited.result(20).concurrency == 1
        # Where the limit has to be set a second time, as under SERIALIZABLE it may, the other claim comes before it.
        held = [lease for lease in (early.future.result(20), late.result(20)) if lease is not None]
        for lease in held:
            assert other.claim("q", ttl=TTL) is None, "each of them is counted"
            lease.complete()
    assert other.claim("q", ttl=TTL) is not None
