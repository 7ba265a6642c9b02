"""Two that do the same at the same time: one id has one life, one request one lease, one key ever larger tokens."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import psycopg
import pytest

import relet
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completion
from relet.store.postgres.tx import PostgresTx
from tests.store_postgres.stops import stops, until_waiting
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
TTL = 60
PAUSING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"


def asked(url, query):
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description else None


def finished(db, url, task_id):
    """A task that is old enough to be pruned."""
    db.submit("q", 1, id=task_id)
    db.claim(task_id=task_id).complete(1)
    asked(url, "UPDATE relet.tasks SET updated_wall_ms = updated_wall_ms - 100000000")
    db.submit("later", 1)


@pytest.mark.parametrize("share", [None, "s"])
def test_an_id_that_is_being_pruned_gets_no_second_life(pair, isolated, monkeypatch, share):
    db, other = pair
    finished(db, isolated, "x")
    with stops(monkeypatch) as made, ThreadPoolExecutor() as threads:
        pruning = made.before_commit()
        pruning.begins(db.prune, older="1h")
        submitted = threads.submit(other.submit, "q", 2, id="x", share=share)
        until_waiting(isolated)
        pruning.goes_on()
        with pytest.raises(relet.Refused, match="second life"):
            submitted.result(20)
        assert pruning.future.result(20).count == 1
    assert db.backend.verify().findings == []


def test_nor_does_one_whose_whole_life_went_by_since_it_was_looked_for(pair, isolated, monkeypatch):
    db, other = pair
    db.submit("q", 1, share="s")
    with stops(monkeypatch) as made:
        submitting, pruning = made.before(PostgresTx, "insert_task"), made.before_commit()
        submitted = submitting.begins(other.submit, "q", 2, id="x", share="s")
        finished(db, isolated, "x")
        pruning.begins(db.prune, older="1h")
        submitting.goes_on()
        until_waiting(isolated)
        pruning.goes_on()
        with pytest.raises(relet.Refused, match="second life"):
            submitted.result(20)
    assert db.backend.verify().findings == []


CLAIMS = {
    "claim": lambda db: db.claim("q", ttl=TTL, request_id="r"),
    "claim by id": lambda db: db.claim(task_id="a", ttl=TTL, request_id="r"),
    "claim_many": lambda db: db.claim_many("q", 2, ttl=TTL, request_id="r"),
}


def handles(leases):
    return [lease.handle for lease in (leases if isinstance(leases, list) else [leases])]


@pytest.mark.parametrize("verb", CLAIMS)
def test_one_request_that_is_made_twice_at_once_gets_the_same_leases(pair, isolated, monkeypatch, verb):
    db, other = pair
    db.submit_many("q", [1, 2, 3, 4, 5], ids=list("abcde"))
    with stops(monkeypatch) as made, ThreadPoolExecutor() as threads:
        first = made.before_commit()
        first.begins(CLAIMS[verb], db)
        second = threads.submit(CLAIMS[verb], other)
        until_waiting(isolated)
        first.goes_on()
        assert handles(first.future.result(20)) == handles(second.result(20))
    assert asked(isolated, "SELECT count(*) FROM relet.leases") == [(2 if verb == "claim_many" else 1,)]


def test_one_completion_that_is_made_twice_at_once_claims_once(pair, isolated, monkeypatch):
    db, other = pair
    db.submit_many("q", [1, 2, 3], ids=list("abc"))
    (grant,) = db.backend.call(Claim(holder="h", queues=["q"]))
    done = Completion(handle=grant.handle, result=msgspec.Raw(b"1"))
    ask = Complete(completions=[done], next=Claim(holder="h", queues=["q"], request_id="r"))
    with stops(monkeypatch) as made, ThreadPoolExecutor() as threads:
        first = made.before_commit()
        first.begins(db.backend.call, ask)
        second = threads.submit(other.backend.call, ask)
        until_waiting(isolated)
        first.goes_on()
        told = [answer.result(20) for answer in (first.future, second)]
    assert [answer.grants[0].handle.task_id for answer in told] == ["b", "b"]
    assert asked(isolated, "SELECT count(*) FROM relet.leases") == [(2,)]


@pytest.mark.parametrize("request_id", [None, "r"])
def test_requests_that_need_it_alone_leave_a_row(pair, isolated, request_id):
    db, _ = pair
    db.submit("q", 1)
    assert db.claim(["q", "r"], ttl=TTL, request_id=request_id)
    assert asked(isolated, "SELECT id FROM relet.requests") == [(request_id,)] * (request_id is not None)


def test_a_call_that_is_repeated_waits_for_whoever_takes_tasks_before_it(pair, isolated):
    """That may be its first try, which is then undone: it is given what that one had locked."""
    db, _ = pair
    db.submit_many("q", [1, 2], ids=["a", "b"])
    ask = Claim(holder="h", queues=["q"], call_id="c", again=True)
    with psycopg.connect(isolated) as mine, ThreadPoolExecutor() as threads:
        mine.execute("SELECT 1 FROM relet.tasks WHERE id = 'a' FOR UPDATE")
        claimed = threads.submit(db.backend.call, ask)
        eventually(lambda: asked(isolated, PAUSING)[0][0] or claimed.done())
        mine.rollback()
        (grant,) = claimed.result(20)
    assert grant.handle.task_id == "a"


def test_tokens_of_one_key_grow_in_the_order_in_which_it_is_held(pair, monkeypatch):
    db, other = pair
    db.submit_many("q", [1, 2, 3], ids=["one", "two", "three"], exclusive="k")
    with stops(monkeypatch) as made:
        slow = made.before(PostgresTx, "lock_exclusive")
        slow.begins(db.claim, "q", ttl=TTL)
        # Not of the same row: where nobody passes over it, it would be waited for.
        between = other.claim(task_id="three", ttl=TTL)
        between.complete(1)
        slow.goes_on()
        assert slow.future.result(20).token > between.token


def test_the_token_of_a_turn_is_drawn_after_its_task_is_locked(pair, monkeypatch):
    db, other = pair
    db.submit("q", 1, id="older", share="b")
    db.submit("q", 1, id="in turn", share="a")
    with stops(monkeypatch) as made:
        slow = made.before(PostgresTx, "lock_turns")
        slow.begins(db.claim, "q", ttl=TTL)
        between = other.claim(task_id="in turn", ttl=TTL)
        between.release()
        slow.goes_on()
        lease = slow.future.result(20)
    assert (lease.task_id, lease.token > between.token) == ("in turn", True)
