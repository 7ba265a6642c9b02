"""One client serves all threads: no error, no mixed-up transaction, no lost or doubled task."""

import random
import threading
import time

import pytest

from relet.core.errors import Conflict, Error, LeaseLost
from relet.store.sqlite import engine
from tests.store.inside import ask, lane
from tests.waiting import Gate

THREADS = 8
SECONDS = 2


def together(*works):
    """Run each on a thread of its own, all at once; raises what one of them raised."""
    faults = []

    def run(work):
        try:
            work()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


@pytest.mark.slow
def test_eight_threads_on_one_client_for_two_seconds_meet_no_error(db, tmp_path):
    db.submit("q", "same", id="fixed")
    until = time.monotonic() + SECONDS
    done: dict[str, int] = {}

    def work(name):
        chance = random.Random(name)
        while time.monotonic() < until:
            (task,) = db.submit_many("q", [name])
            if chance.random() < 0.3:
                with pytest.raises(Conflict):
                    db.submit_many("q", ["lost", "other"], ids=[None, "fixed"])
            lease = db.claim("q", holder=name)
            if lease is None:
                continue
            lease.renew()
            lease.save({"by": name})
            if chance.random() < 0.2:
                lease.release()
            else:
                lease.complete(name)
                done[lease.task_id] = done.get(lease.task_id, 0) + 1
            assert db.task(task.id).id == task.id

    together(*[lambda name=f"thread-{n}": work(name) for n in range(THREADS)])
    assert set(done.values()) == {1}, "no task was completed twice"
    finished = dict(ask(tmp_path, "SELECT id, result FROM tasks WHERE state = 'done'"))
    assert set(finished) == set(done)
    assert not [row for row in ask(tmp_path, "SELECT input FROM inputs") if row[0] == '"lost"']
    open_leases = ask(tmp_path, "SELECT task_seq FROM leases WHERE ended IS NULL")
    assert len(open_leases) == len(set(open_leases))
    tokens = [row[0] for row in ask(tmp_path, "SELECT token FROM leases")]
    assert len(tokens) == len(set(tokens))


def test_a_rollback_in_one_thread_never_undoes_what_another_wrote(db):
    rounds = 40

    def refused():
        for _ in range(rounds):
            with pytest.raises(ValueError, match="undo"):
                lane(db).transact("BEGIN IMMEDIATE", undo)

    def undo(connection):
        connection.execute("UPDATE meta SET lapse_count = lapse_count + 1")
        raise ValueError("undo")

    def kept():
        for n in range(rounds):
            db.submit("q", n, id=f"{threading.get_ident()}-{n}")

    together(refused, kept, refused, kept)
    assert len(db.tasks(limit=1_000)) == 2 * rounds
    assert lane(db).connection().execute("SELECT lapse_count FROM meta").fetchall() == [(0,)]


def test_one_task_has_one_winner_however_many_ask_at_once(db):
    db.submit("q", 1)
    start, won = threading.Barrier(THREADS), []

    def ask_for_it():
        start.wait()
        if (lease := db.claim("q", holder=str(threading.get_ident()))) is not None:
            won.append(lease)

    together(*[ask_for_it] * THREADS)
    assert len(won) == 1


def test_one_lease_is_ended_once_however_many_try(db):
    db.submit("q", 1, id="t")
    lease = db.claim("q")
    start, answers = threading.Barrier(THREADS), []

    def end(how):
        start.wait()
        try:
            answers.append(how())
        except Error as refused:
            answers.append(refused)

    together(*[lambda n=n: end(lambda: lease.complete(n) if n % 2 else lease.fail(str(n))) for n in range(THREADS)])
    assert len([answer for answer in answers if not isinstance(answer, Error)]) == 1
    assert {type(answer) for answer in answers if isinstance(answer, Error)} <= {LeaseLost, Conflict}
    assert [event.kind for event in db.history("t")][2:] in (["completed"], ["retried"])


def test_closing_waits_for_whoever_is_within_a_transaction(db):
    inside, go_on, closed = Gate(), Gate(), Gate()

    def work(connection):
        inside.set()
        go_on.pass_through()
        connection.execute("UPDATE meta SET lapse_count = 7")

    def close():
        db.close()
        closed.set()

    def leave():
        inside.pass_through()
        closer = threading.Thread(target=close)
        closer.start()
        assert not closed.wait(0.05)
        go_on.set()
        closer.join()
        assert closed.is_set()

    together(lambda: lane(db).transact("BEGIN IMMEDIATE", work), leave)


def test_somebody_else_who_commits_ends_the_wait_for_a_change(connect, clock):
    watcher, writer = connect(clock), connect(clock)
    watcher.backend.wait_for_change(0)
    began = time.monotonic()
    waiting = threading.Thread(target=watcher.backend.wait_for_change, args=(30,))
    waiting.start()
    writer.submit("q", 1)
    waiting.join(20)
    assert not waiting.is_alive()
    assert time.monotonic() - began < 20


def test_everybody_who_waits_is_woken_not_only_the_first(connect, clock):
    watcher, writer = connect(clock), connect(clock)
    looked, began = threading.Barrier(4), time.monotonic()

    def wait():
        watcher.backend.wait_for_change(0)
        looked.wait()
        watcher.backend.wait_for_change(30)

    def write():
        looked.wait()
        writer.submit("q", 1)

    together(wait, wait, wait, write)
    assert time.monotonic() - began < 20


def test_without_a_change_the_wait_ends_when_it_should(db):
    db.backend.wait_for_change(0)
    began = time.monotonic()
    db.backend.wait_for_change(0.03)
    assert 0.03 <= time.monotonic() - began < 5


def test_who_waits_for_long_is_told_and_looks_seldom_and_too_many_look_themselves(connect, clock, monkeypatch):
    watcher, writer = connect(clock), connect(clock)
    store, made = watcher.backend.store, []
    open_one = store.watch
    monkeypatch.setattr(store, "watch", lambda: made.append(1) or open_one())
    watcher.backend.wait_for_change(0)
    watcher.backend.wait_for_change(0.06)
    assert made == [1]
    assert [store._told.acquire(blocking=False) for _ in range(engine.TOLD_MAX)] == [True] * engine.TOLD_MAX
    writer.submit("q", 1)
    began = time.monotonic()
    watcher.backend.wait_for_change(30)
    assert time.monotonic() - began < 20, "a commit between two waits is not missed"
    assert made == [1]


def test_what_one_kind_of_wait_has_seen_the_other_one_knows(connect, clock):
    watcher, writer = connect(clock), connect(clock)
    watcher.backend.wait_for_change(0)
    writer.submit("q", 1)
    watcher.backend.wait_for_change(30)
    began = time.monotonic()
    watcher.backend.wait_for_change(0.06)
    watcher.backend.wait_for_change(0.01)
    assert time.monotonic() - began >= 0.07, "seen once, it is news no more"
