"""Finished tasks leave in small transactions, beside whoever uses the store, and no matter how many prune."""

import contextlib
import threading

import psycopg
import pytest

import relet
from relet.core import limits
from relet.core.rules.prune import Prune
from relet.testing import Clock
from relet.testing.stores import open_store
from relet.worker.retention import LOOK_EVERY_S, Retention
from tests.store_postgres.crowd import fill, settle
from tests.store_postgres.threads import all_at_once
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
FINISHED = 2_000
SLOTS = 16


@pytest.fixture
def url(database):
    """A store with many tasks that finished long ago."""
    relet.connect(database).close()
    fill(database, FINISHED)
    settle(database)
    return database


def value(url, query):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchone()[0]


def rows(url):
    return {table: value(url, f"SELECT count(*) FROM relet.{table}") for table in ("tasks", "leases", "inputs")}


def test_all_leave_in_small_batches_and_the_figures_stay(url):
    with relet.connect(url) as db:
        db.submit("q0", 1, id="open")
        before, batches, after = db.stats().total, [], 0
        while after is not None:
            batch = db.backend.call(Prune(older_ms=limits.HOUR_MS, after=after))
            batches.append(len(batch.ids))
            after = batch.cursor
        assert sum(batches) == FINISHED
        assert max(batches) <= limits.PRUNE_ITEMS_MAX
        assert len(batches) >= FINISHED / limits.PRUNE_ITEMS_MAX
        assert rows(url) == {"tasks": 1, "leases": 0, "inputs": 1}
        assert value(url, "SELECT count(*) FROM relet.events WHERE task_seq IS NOT NULL") == 1
        assert db.stats().total == before
        assert db.verify().ok
        with pytest.raises(relet.Refused, match="pruned"):
            db.submit("q0", 1, id="done-7")


def test_a_worker_removes_a_batch_at_each_tick_while_there_is_more(url):
    with relet.connect(url) as db:
        db.submit("q0", 1, id="open")
        for n in range(5):
            db.queue(f"q{n}", retention="1d")
        retention, now, seen = Retention(db, 0.0), LOOK_EVERY_S, [FINISHED + 1]
        while seen[-1] > 1:
            retention.tick(now)
            seen.append(rows(url)["tasks"])
            assert 0 < seen[-2] - seen[-1] <= limits.PRUNE_ITEMS_MAX
        assert db.stats().total.done == FINISHED


def test_several_that_prune_beside_those_who_work_remove_each_task_once(url):
    gone, wrong, over = [], [], threading.Event()

    def prune():
        try:
            with relet.connect(url) as db:
                gone.append(db.prune("1h").count)
        except Exception as caught:
            wrong.append(caught)

    def work():
        try:
            with relet.connect(url) as db:
                while not over.is_set():
                    db.submit("work", 1)
                    db.claim("work", ttl="20s").complete(2)
        except Exception as caught:
            wrong.append(caught)

    pruning = [threading.Thread(target=prune) for _ in range(3)]
    working = threading.Thread(target=work)
    for thread in [working, *pruning]:
        thread.start()
    for thread in pruning:
        thread.join()
    over.set()
    working.join()
    assert wrong == []
    with relet.connect(url) as db:
        db.submit("q0", 1)
        gone.append(db.prune("1h").count)
        assert sum(gone) == FINISHED
        assert value(url, "SELECT count(*) FROM relet.tombstones") == FINISHED
        assert db.verify().ok


def test_several_that_prune_into_the_same_totals_meet_no_deadlock(url):
    """Sessions whose numbers agree add to the same rows, which are taken in one order, and last."""
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = value(url, deadlocks)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(relet.connect(url)) for _ in range(4)]
        clients[0].submit("q0", 1, id="open")
        for client in clients:
            eventually(lambda client=client: slot_of(client) == slot_of(clients[0]) or renewed(client))
        all_at_once(*(lambda client=client: client.prune("1h") for client in clients))
    assert rows(url)["tasks"] == 1
    eventually(lambda: value(url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()") == 1)
    assert value(url, deadlocks) == before


def slot_of(client):
    with client.backend.store.calls.borrowed(5) as connection:
        return connection.info.backend_pid % SLOTS


def renewed(client):
    """Its next connection is another one."""
    client.backend.store.calls.forget_broken()
    return False


def test_a_task_that_somebody_has_locked_is_left_for_the_next_time(url):
    with relet.connect(url) as db, psycopg.connect(url) as other:
        db.submit("q0", 1)
        other.execute("SELECT seq FROM relet.tasks WHERE id = 'done-3' FOR UPDATE")
        assert db.prune("1h").count == FINISHED - 1
        other.rollback()
        assert db.prune("1h").ids == ["done-3"]


def test_what_lapsed_is_counted_for_a_minute_and_forgotten_by_sweeps(database, tmp_path):
    clock = Clock()
    with open_store(tmp_path, clock, url=database) as db:
        for n in range(20):
            db.submit("q", n)
        db.claim_many("q", 20, ttl="10s")
        clock.advance("11s")
        assert db.sweep() == 20
        assert value(database, "SELECT sum(n) FROM relet.lapses") == 20
        clock.advance("30s")
        db.sweep()
        assert value(database, "SELECT count(*) FROM relet.lapses") == 20
        clock.advance("31s")
        db.sweep()
        assert value(database, "SELECT count(*) FROM relet.lapses") == 0


def test_a_sweep_does_not_wait_for_another_that_forgets(database, tmp_path):
    clock = Clock()
    with open_store(tmp_path, clock, url=database) as db, psycopg.connect(database) as other:
        db.submit("q", 1, exclusive="key")
        db.claim("q", ttl="10s")
        clock.advance("11s")
        db.sweep()
        clock.advance("100s")
        other.execute("SELECT * FROM relet.lapses FOR UPDATE")
        other.execute("SELECT * FROM relet.keys FOR UPDATE")
        for _ in range(20):
            db.sweep()
            clock.advance("1s")
        assert value(database, "SELECT count(*) FROM relet.lapses") == 1
        other.rollback()
        db.sweep()
        assert eventually(lambda: value(database, "SELECT count(*) FROM relet.lapses") == 0)
