"""Renewals in bulk, endings and sweeps of the same leases: nobody waits in a circle, and what is skipped is told."""

import itertools
import threading
from collections import Counter

import psycopg
import pytest

import relet
from tests.store_postgres.threads import all_at_once
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
ROUNDS = 10
"""Of the two hundred that make sure; the others are with the faults."""
LEASES = 200
TOGETHER = 25
SHORT = 5
SERIALIZABLE = "ALTER DATABASE {} SET default_transaction_isolation = 'serializable'"


@pytest.fixture
def db(database):
    with relet.connect(database) as client:
        yield client


def test_pg_06_renewals_in_bulk_endings_and_sweeps_meet_no_deadlock(db):
    meet_no_deadlock(db, ROUNDS)
    assert db.backend.verify().findings == []


def meet_no_deadlock(db, rounds):
    """Two hundred leases renewed together while they are completed in reverse order and others are swept."""
    told = Counter()
    for _ in range(rounds):
        told += round_of(db)
    assert told["completed"] == rounds * LEASES
    assert told["renewed"] > 0
    with psycopg.connect(db.backend.url) as connection:
        deadlocks = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        assert deadlocks.fetchone() == (0,)


def round_of(db):
    """What was answered, by kind."""
    db.submit_many("work", list(range(LEASES)))
    db.submit_many("short", list(range(SHORT)))
    leases = db.claim_many("work", LEASES, ttl=60)
    short = db.claim_many("short", 4 * SHORT, ttl=0.1)
    told, over, left = Counter(), threading.Event(), [*short, *leases]

    def renew():
        while not over.is_set():
            for answer in db.renew_many(list(left)):
                told[kind_of(answer)] += 1

    def sweep():
        while not over.is_set():
            db.sweep()

    def complete():
        try:
            for batch in batches(leases[::-1]):
                for answer in db.complete_many([(lease, lease.token) for lease in batch]):
                    assert not isinstance(answer, relet.Error), answer
                    told["completed"] += 1
                # A moment late, as a keeper would.
                del left[-len(batch) :]
        finally:
            over.set()

    all_at_once(renew, sweep, complete)
    assert set(told) <= {"completed", "renewed", "RELET-BUSY", "lost closed", "lost expired", "lost superseded"}, told
    return told


def kind_of(answer):
    match answer:
        case relet.LeaseLost():
            return f"lost {answer.reason}"
        case relet.Error():
            return answer.code
        case _:
            return "renewed"


@pytest.mark.case("PG-06")
def test_a_renewal_that_skips_a_row_reports_that_row_and_no_other(db, database):
    db.submit_many("work", [1, 2, 3])
    leases = db.claim_many("work", 3, ttl=60)
    with locked(database, leases[1]):
        first, skipped, last = db.renew_many(leases)
    assert min(first, last) > 59
    assert isinstance(skipped, relet.Unavailable)
    assert (skipped.code, skipped.retryable, skipped.detail["token"]) == ("RELET-BUSY", True, leases[1].token)
    assert min(db.renew_many(leases)) > 59


def test_a_keeper_whose_row_was_skipped_doubts_and_is_answered_before_the_end(db, database):
    db.submit_many("work", [1, 2])
    kept, other = db.claim_many("work", 2, ttl=3)
    with kept.keep(), other.keep():
        begun = kept.belief.trust.renewed_ms
        with locked(database, kept):
            eventually(lambda: kept.status == "doubtful")
            eventually(lambda: other.belief.trust.renewed_ms > begun)
            assert (kept.belief.trust.renewed_ms, other.status) == (begun, "held")
        eventually(lambda: kept.status == "held", within=1)
        assert kept.belief.trust.renewed_ms > begun
        kept.check()
        kept.complete()
        other.complete()
    assert [task.losses for task in db.tasks(queue="work")] == [0, 0]


def test_a_row_that_stays_locked_loses_its_lease_and_nobody_elses(db, database):
    db.submit_many("work", [1, 2])
    kept, other = db.claim_many("work", 2, ttl=1)
    with other.keep():
        with locked(database, kept), pytest.raises(relet.LeaseLost), kept.keep():
            eventually(lambda: kept.status == "lost")
        assert other.status == "held"
        other.check()
        other.complete()


@pytest.mark.parametrize("claimers", [8])
def test_claimers_of_a_database_that_is_serializable_by_default_see_no_error(database, claimers):
    tasks = 400
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(SERIALIZABLE.format(connection.info.dbname))
    try:
        with relet.connect(database) as db:
            db.submit_many("work", list(range(tasks)))
            taken = [[] for _ in range(claimers)]

            def work(mine):
                with relet.connect(database) as own:
                    while (lease := own.claim("work", ttl=60)) is not None:
                        mine.append((lease.task_id, lease.token))
                        lease.renew()
                        lease.save(1)
                        lease.complete()

            all_at_once(*(lambda mine=mine: work(mine) for mine in taken))
            found = list(itertools.chain(*taken))
            assert len({task for task, _ in found}) == len({token for _, token in found}) == len(found) == tasks
            assert {(task.state, task.attempt) for task in db.tasks(limit=1000)} == {("done", 1)}
            assert db.backend.verify().findings == []
    finally:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {connection.info.dbname} RESET default_transaction_isolation")


def locked(url, lease):
    """Somebody else's transaction that has the row of a lease, for a block."""
    connection = psycopg.connect(url)
    connection.execute("SELECT 1 FROM relet.leases WHERE token = %s FOR UPDATE", [lease.token])
    return connection


def batches(leases):
    return (leases[at : at + TOGETHER] for at in range(0, len(leases), TOGETHER))
