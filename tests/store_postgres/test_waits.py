"""Who waited is judged by the time after the wait, whatever it has waited for."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import msgspec
import psycopg
import pytest

import relet
from relet.core import work
from relet.core.errors import LeaseLost
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.end_effect import EndEffect
from relet.core.rules.start_effect import StartEffect
from relet.store.postgres.texts import CLOCKED, SQL
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
NOW_MS = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
KEYED = work.Contract(kind="keyed", retention_ms=86_400_000)
TTL_S = 1
UNCLOCKED = {
    "lock_queue": "the look that follows it is what is judged by, and has the clock",
    "lock_wait": "under the lock of its task, which whoever locks it has taken before",
    "lock_question": "as lock_wait",
    "lock_last_wait": "as lock_wait",
    "extend_leases": "it judges by itself, by a clock that it reads when all of its rows are held",
    "move_delays": "by how much was found before, and nobody is let in meanwhile",
    "forget_requests": "what it removes is too old for anybody to ask for",
    "forget_lapses": "what it removes is too old for anybody to judge",
    "forget_keys": "what it removes is free, whatever the time",
}
LAST = re.compile(r"\{clock\}\s+FROM\b(?!.*\{clock\})", re.DOTALL)


def test_every_statement_that_may_wait_for_rows_ends_with_the_clock():
    waits = {name for name, text in SQL.items() if "FOR UPDATE" in text}
    assert waits - CLOCKED == UNCLOCKED.keys(), "give it the clock, or a reason"
    # Or judges by itself, with what it has locked in hand.
    assert [name for name in waits & CLOCKED if not LAST.search(SQL[name]) and "{now_m}" not in SQL[name]] == []


@pytest.fixture
def db(database):
    with relet.connect(database) as db:
        db.sweep()  # the first write to a new store begins an epoch, which other clients find out about
        yield db


@pytest.fixture
def waiter(db, database):
    """The same store, asked beside."""
    with ThreadPoolExecutor() as threads, relet.connect(database) as other:
        yield lambda ask: threads.submit(ask, other)


@contextmanager
def locked(database, *statements):
    """Somebody has what these statements lock, until the block ends."""
    with psycopg.connect(database) as holder:
        for statement in statements:
            holder.execute(statement)
        yield holder
        holder.rollback()


def freed_after_the_end(database, holder, token):
    """Let go of the rows once somebody waits for them, and a lease has run out meanwhile."""
    with psycopg.connect(database, autocommit=True) as looker:
        eventually(lambda: looker.execute(WAITING).fetchone()[0])
        ends_ms = looker.execute("SELECT expires_ms FROM relet.leases WHERE token = %s", [token]).fetchone()[0]
        eventually(lambda: looker.execute(NOW_MS).fetchone()[0] > ends_ms)
    holder.rollback()


def freed_later(database, holder, seconds=0.5):
    """Let go of the rows once somebody has waited for so long; answers when that was."""
    with psycopg.connect(database, autocommit=True) as looker:
        eventually(lambda: looker.execute(WAITING).fetchone()[0])
        until = time.monotonic() + seconds
        eventually(lambda: time.monotonic() > until)
        now_ms = looker.execute(NOW_MS).fetchone()[0]
    holder.rollback()
    return now_ms


def by_the_rule(client):
    """What is plain is answered in a single statement, which judges by itself."""
    client.backend.store.is_hot = False
    return client


def held(lease):
    return lease.belief.grant.handle


def starting(lease):
    return StartEffect(
        handle=held(lease), name="pay", payload=msgspec.Raw(b"{}"), contract=KEYED, timeout_ms=1000, key="charge",
        call_id=str(lease.token),
    )  # fmt: skip


def start(db, lease):
    return db.backend.call(starting(lease))


def end(db, lease, started, outcome=work.Outcome.NOT_APPLIED):
    return db.backend.call(
        EndEffect(handle=held(lease), effect_id=started.id, attempt=started.attempt, outcome=outcome)
    )


def test_an_effect_whose_row_was_had_too_late_is_not_started(db, database, waiter):
    db.submit_many("q", [1, 2])
    first, lease = db.claim("q", ttl=60), db.claim("q", ttl=TTL_S)
    end(db, first, start(db, first))
    with locked(database, "SELECT 1 FROM relet.effects FOR UPDATE") as holder:
        asked = waiter(lambda other: start(other, lease))
        freed_after_the_end(database, holder, lease.token)
        with pytest.raises(LeaseLost) as lost:
            asked.result(20)
    assert lost.value.reason == "expired"
    assert [effect.tries for effect in db.effects()] == [1]


def test_an_effect_whose_key_was_had_too_late_is_not_started(db, database, waiter):
    """No row is locked by it: another task was just adding the same key, and gave up."""
    db.submit_many("q", [1, 2])
    first, lease = db.claim("q", ttl=60), db.claim("q", ttl=TTL_S)
    with psycopg.connect(database) as holder:
        holder.execute("SELECT 1")
        db.backend.call_within(holder, starting(first))
        asked = waiter(lambda other: start(other, lease))
        freed_after_the_end(database, holder, lease.token)
        with pytest.raises(LeaseLost) as lost:
            asked.result(20)
    assert lost.value.reason == "expired"
    assert db.effects() == []


@pytest.mark.parametrize("verb", ["fail", "release"])
def test_an_end_that_waited_for_an_effect_comes_too_late(db, database, waiter, verb):
    db.submit("q", id="t")
    lease = db.claim("q", ttl=TTL_S)
    start(db, lease)
    ask = {"fail": lambda one: one.fail("late"), "release": lambda one: one.release()}[verb]
    with locked(database, "SELECT 1 FROM relet.effects FOR UPDATE") as holder:
        asked = waiter(lambda other: ask(other.lease(lease.handle)))
        freed_after_the_end(database, holder, lease.token)
        with pytest.raises(LeaseLost) as lost:
            asked.result(20)
    assert lost.value.reason == "expired"
    assert (db.task("t").losses, db.task("t").failures) == (1, 0)
    assert db.effects()[0].state == "unknown"


def test_an_outcome_that_waited_for_its_effect_is_kept_as_evidence_alone(db, database, waiter):
    db.submit("q")
    lease = db.claim("q", ttl=TTL_S)
    started = start(db, lease)
    with locked(database, "SELECT 1 FROM relet.effects FOR UPDATE") as holder:
        asked = waiter(lambda other: end(other, lease, started, work.Outcome.APPLIED))
        freed_after_the_end(database, holder, lease.token)
        with pytest.raises(LeaseLost):
            asked.result(20)
    (effect,) = db.effects()
    assert (effect.state, [said.outcome for said in effect.evidence]) == ("unknown", ["applied"])


def test_many_that_are_cancelled_late_have_lapsed_before(db, database, waiter):
    db.submit("q", id="t")
    lease = db.claim("q", ttl=TTL_S)
    with locked(database, "SELECT 1 FROM relet.tasks FOR UPDATE") as holder:
        asked = waiter(lambda other: other.cancel_many(queue="q", reason="over"))
        freed_after_the_end(database, holder, lease.token)
        asked.result(20)
    assert (db.task("t").state, db.history("t")[-1].kind) == ("cancelled", "cancelled")


def test_results_are_not_lost_by_waiting_for_what_comes_next(db, database, waiter):
    db.queue("q", concurrency=5)
    db.submit_many("q", [1, 2, 3])
    leases = db.claim_many("q", 2, ttl=TTL_S)
    ask = Complete(
        completions=[Completion(handle=held(lease), result=msgspec.Raw(b'"in time"')) for lease in leases],
        next=Claim(holder="h", queues=["q"], call_id="c"),
    )
    with locked(database, "SELECT 1 FROM relet.queues FOR UPDATE") as holder:
        asked = waiter(lambda other: by_the_rule(other).backend.call(ask))
        freed_after_the_end(database, holder, leases[1].token)
        assert len(asked.result(20).grants) == 1
    assert [db.task(lease.task_id).result for lease in leases] == ["in time"] * 2


CLAIMS = {
    "plain": {}, "share": {"share": "s"}, "without share": {"share": None}, "delayed": {"delay": 0.1},
    "key": {"exclusive": "k"},
}  # fmt: skip


@pytest.mark.parametrize("kind", CLAIMS)
def test_a_grant_that_waited_lasts_from_the_end_of_the_wait(database, monkeypatch, kind):
    monkeypatch.setenv("RELET_POSTGRES_WITHOUT", "skip_locked")
    with relet.connect(database) as db, ThreadPoolExecutor() as threads:
        db.submit("q", id="t", **{name: value for name, value in CLAIMS[kind].items() if value is not None})
        if kind == "without share":
            db.submit("q", id="u", share="s")
            db.cancel("u")
        if kind == "delayed":
            eventually(lambda: db.task("t").due_at and time.time() > db.task("t").due_at.timestamp())
        rows = "SELECT 1 FROM relet.tasks FOR UPDATE"
        if kind == "key":
            rows = "INSERT INTO relet.keys (tenant, name) VALUES ('default', 'k')"
        with locked(database, rows) as holder:
            asked = threads.submit(lambda: db.claim("q", ttl=60))
            freed_ms = freed_later(database, holder)
            lease = asked.result(20)
        with psycopg.connect(database) as looker:
            claimed_ms = looker.execute(
                "SELECT claimed_ms FROM relet.leases WHERE token = %s", [lease.token]
            ).fetchone()[0]
        assert claimed_ms >= freed_ms
