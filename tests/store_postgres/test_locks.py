"""What one write lock gives a file for nothing: clocks read behind a lock, a feed in its order, shares that open."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import relet
from relet.core.errors import LeaseLost
from relet.core.rules.inspect import Changes
from relet.store.postgres.tx import PostgresTx
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
ADD_EVENT = (
    "INSERT INTO relet.events (task_seq, kind, state, at_ms, wall_ms, detail) "
    "SELECT seq, 'saved', 'ready', {now}, {now}, '{{}}' FROM relet.tasks WHERE id = 'first'"
).format(now="(extract(epoch FROM clock_timestamp()) * 1000)::bigint")


@pytest.fixture
def mine(database):
    with psycopg.connect(database) as mine:
        yield mine


def until_somebody_waits(database):
    with psycopg.connect(database, autocommit=True) as looker:
        eventually(lambda: looker.execute(WAITING).fetchone()[0])


@pytest.mark.parametrize("verb", ["complete", "save", "fail", "release"])
def test_a_verb_that_waited_for_its_row_past_the_end_is_refused(db, database, mine, verb):
    db.submit("q", id="t")
    lease = db.claim("q", ttl=1)
    mine.execute("SELECT 1 FROM relet.tasks WHERE id = 't' FOR UPDATE")
    other = relet.connect(database)
    ask = {
        "complete": lambda one: one.complete("late"), "save": lambda one: one.save("late"),
        "fail": lambda one: one.fail("late"), "release": lambda one: one.release(),
    }[verb]  # fmt: skip
    with ThreadPoolExecutor() as threads, other:
        asked = threads.submit(ask, other.lease(lease.handle))
        until_somebody_waits(database)
        expires_ms = mine.execute("SELECT expires_ms FROM relet.leases").fetchone()[0]
        eventually(lambda: time.time() * 1_000 > expires_ms)
        mine.rollback()
        with pytest.raises(LeaseLost) as lost:
            asked.result(20)
    assert lost.value.reason == "expired"
    assert db.task("t").result is None


def feed(db, after=0):
    page = db.backend.call(Changes(after=after))
    return [(event.task_id, str(event.kind)) for event in page.events]


def test_the_feed_stops_before_a_number_that_may_still_come(db, mine):
    db.submit("q", id="first")
    seen = db.history("first")[-1].seq
    mine.execute(ADD_EVENT)
    db.submit("q", id="second")
    assert feed(db, seen) == [], "what was drawn before it is not committed yet"
    mine.commit()
    assert feed(db, seen) == [("first", "saved"), ("second", "submitted")]


def test_who_begins_to_read_begins_before_a_number_that_may_still_come(db, mine):
    db.submit("q", id="first")
    mine.execute(ADD_EVENT)
    db.submit("q", id="second")
    begun = db.backend.call(Changes()).cursor
    mine.commit()
    assert ("first", "saved") in feed(db, begun)


def test_the_feed_goes_on_past_a_number_that_was_given_up(db, mine):
    db.submit("q", id="first")
    seen = db.history("first")[-1].seq
    mine.execute(ADD_EVENT)
    db.submit("q", id="second")
    mine.rollback()
    assert feed(db, seen) == [("second", "submitted")]


def test_a_task_that_is_submitted_while_shares_begin_is_not_overlooked(db, database, mine):
    """Its submit has not seen that there are shares, and its number may be larger than theirs."""
    with mine.transaction():
        db.submit("q", {"n": 1}, id="plain", tx=mine)
        shared = threading.Thread(target=lambda: db.submit("q", {"n": 2}, id="shared", share="s"))
        shared.start()
        until_somebody_waits(database)
    shared.join(20)
    assert {db.claim("q").task_id, db.claim("q").task_id} == {"plain", "shared"}


def test_two_that_hold_the_same_tasks_in_other_orders_both_end(db):
    """Completions in bulk lock in the order of tasks, whatever order they are named in."""
    for n in range(10):
        db.submit_many("q", list(range(50)), ids=[f"{n}-{i}" for i in range(50)])
        leases = db.claim_many("q", 50, ttl=30)
        with ThreadPoolExecutor() as threads:
            there = threads.submit(db.complete_many, [(lease, None) for lease in leases])
            back = threads.submit(db.renew_many, leases[::-1])
            assert all(not isinstance(one, Exception) for one in there.result(30))
            back.result(30)


def test_a_lease_that_another_ends_between_the_look_and_the_lock_leaves_its_key_free(db, database, mine, monkeypatch):
    db.submit("first", exclusive="k")
    lease = db.claim("first", ttl=0.2)
    db.submit("second", id="next", exclusive="k")
    eventually(lambda: not db.task(lease.task_id).live)
    mine.execute(
        "SELECT 1 FROM relet.tasks WHERE queue = 'first' FOR UPDATE"
    )  # so that the claim itself passes it over
    looked = []
    can_end = PostgresTx._can_end
    with relet.connect(database) as other:

        async def ended_first(self, token):
            if not looked:
                looked.append(token)
                mine.rollback()
                assert other.sweep() == 1
            return await can_end(self, token)

        monkeypatch.setattr(PostgresTx, "_can_end", ended_first)
        assert db.claim("second").task_id == "next"
    assert looked == [lease.token]
    assert db.backend.verify().findings == []
