"""Steps of the server's clock that are met first by what does not look for one, or by who cannot tell."""

import threading

import psycopg
import pytest

import relet
from relet.store.postgres.clock import ServerClock
from relet.store.postgres.runner import PostgresRunner
from tests.postgres import PostgresServer
from tests.waiting import Gate, eventually

pytestmark = pytest.mark.postgres
HOUR_S = 3_600
OUTAGES = "SELECT count(*) FROM relet.events WHERE kind = 'outage'"
OUTLIVES = 90, 120
"""Minutes of a lease, and its cap: it is live after the step too, for who believes in it."""
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.fixture(scope="module")
def server():
    with PostgresServer(steered=True) as server:
        yield server


@pytest.fixture
def at(server):
    """The URL of an empty database, on a server that tells the right time."""
    server.clock.step_to(0)
    with server.database() as url:
        yield url


@pytest.fixture
def db(at):
    with relet.connect(at) as client:
        yield client


def asked(url, sql):
    with psycopg.connect(url) as connection:
        return connection.execute(sql).fetchone()[0]


def held_and_delayed(db, minutes=1, most_minutes=30):
    """A lease with a cap, and a task that is delayed by half an hour; what checks that both are as they were."""
    db.submit("capped", max_hold=most_minutes * 60)
    db.submit("delayed", delay="30m")
    lease = db.claim("capped", ttl=minutes * 60)

    def check():
        assert lease.renew() > minutes * 60 - 5
        assert db.claim("delayed") is None
        lease.complete()
        assert db.backend.verify().findings == []

    return check


def without_looking(db):
    """As for a busy worker, who has looked a moment ago for what falls due."""
    db.backend.store.looks.is_fresh = lambda *_: True


VERBS = {
    "claim": lambda db, _: db.claim("work", ttl=60),
    "complete": lambda _, leases: leases[0].complete(),
    "complete and claim": lambda _, leases: leases[0].complete(claim_next=True),
    "complete many": lambda db, leases: db.complete_many([(lease, None) for lease in leases]),
}


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
@pytest.mark.parametrize("verb", VERBS)
def test_one_statement_that_is_first_to_meet_a_step_believes_none_of_it(server, at, db, verb, step_s):
    check = held_and_delayed(db)
    db.submit_many("work", list(range(4)))
    leases = db.claim_many("work", 2, ttl=60)
    without_looking(db)
    server.clock.step_to(step_s)
    lease = VERBS[verb](db, leases)
    assert asked(at, OUTAGES) == 1, "by this very verb"
    assert "claim" not in verb or 59 < lease.renew() <= 60
    check()


def test_who_comes_after_a_step_forward_moves_no_cap_and_no_delay(server, at, db):
    """It has nothing to tell the step by, and what it commits stands; who saw the time before moves all along."""
    check = held_and_delayed(db, *OUTLIVES)
    server.clock.step_to(HOUR_S)
    with relet.connect(at) as late:
        late.submit("late", delay="2s")
        late.submit("mine", max_hold="30m")
        mine = late.claim("mine", ttl=60)
        assert asked(at, OUTAGES) == 0
        check()
        assert asked(at, OUTAGES) == 1
        assert mine.renew() > 59
        claimed_ms = (
            "SELECT claimed_ms - (SELECT at_ms FROM relet.events WHERE kind = 'claimed' AND token = l.token) "
        )
        assert asked(at, claimed_ms + f"FROM relet.leases l WHERE token = {mine.token}") == 0
        assert db.claim("late", wait=10), "was delayed by the time that is in force"


def test_who_comes_after_a_step_back_is_told_by_what_was_committed(server, at, db):
    check = held_and_delayed(db)
    server.clock.step_to(-HOUR_S)
    with relet.connect(at) as late:
        late.submit("mine", max_hold="30m")
        assert asked(at, OUTAGES) == 1
        mine = late.claim("mine", ttl=60)
        check()
        assert mine.renew() > 59
    assert asked(at, OUTAGES) == 1


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_transaction_that_began_before_a_settlement_judges_by_no_old_clock_after_it(
    server, at, db, monkeypatch, is_slow
):
    """It is waited for; one that takes too long is overtaken, and finds that."""
    check = held_and_delayed(db, *OUTLIVES)
    db.submit("work")
    server.clock.step_to(HOUR_S)
    looked, gate, told = threading.Event(), Gate(), []
    look = PostgresRunner._look_at_meta

    def look_and_wait(self):
        look(self)
        if threading.current_thread().name == "late" and not looked.is_set():
            looked.set()
            gate.pass_through()

    with relet.connect(at) as late:
        late.backend.store.is_hot = False
        monkeypatch.setattr(PostgresRunner, "_look_at_meta", look_and_wait)
        claims = threading.Thread(target=lambda: told.append(late.claim("work", ttl=60)), name="late")
        settles = threading.Thread(target=lambda: db.submit("other"))
        claims.start()
        assert looked.wait(10)
        settles.start()
        if is_slow:
            settles.join(10)
            assert asked(at, OUTAGES) == 1
        else:
            eventually(lambda: server.value(WAITING))
        gate.set()
        claims.join(10)
        settles.join(10)
        assert asked(at, OUTAGES) == 1
        assert 59 < told[0].renew() <= 60, "it is given no hour more, and none less"
        check()


def test_an_answer_from_before_the_last_step_is_none():
    clock = ServerClock()
    sent_at = clock.elapsed_ms()
    assert clock.notice(5_000, 2, sent_at)
    assert not clock.notice(5_000, 1, sent_at)
    assert clock.reading().steps == 2
