"""A forked child opens the store anew and works; the parent, whatever its threads were doing, goes on."""

import threading
from contextlib import contextmanager

import pytest

import relet
from relet.client import belief as beliefs
from relet.core.errors import Unavailable
from relet.store.sqlite import engine
from tests.store.forking import Child, forked, held_elsewhere
from tests.store.inside import is_locked, lane, path_of
from tests.waiting import Gate

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def work(db, lease):
    """What a child is to do: claim, renew what the parent holds, finish what it claimed."""
    own = db.claim("q", holder="child")
    left_s = lease.renew()
    own.complete("by the child")
    return [own.task_id, left_s]


@pytest.fixture
def lease(db):
    db.submit("q", 1, id="parent")
    lease = db.claim("q", holder="parent", ttl=60)
    db.submit("q", 2, id="child")
    return lease


def goes_on(db):
    """The parent sees what the child did, and is as able as before."""
    assert db.task("child").result == "by the child"
    db.submit("q", 3)
    assert db.claim("q").complete() is None


def test_a_child_claims_and_renews_and_the_parent_goes_on(db, lease):
    assert forked(lambda: work(db, lease)) == ["child", 60.0]
    goes_on(db)


def test_a_child_of_a_child_works_too(db, lease):
    assert forked(lambda: forked(lambda: work(db, lease))) == ["child", 60.0]
    goes_on(db)


@contextmanager
def busy_threads(db, count=4):
    """Threads that are within short transactions all the time."""
    stop, faults = threading.Event(), []

    def run():
        try:
            while not stop.is_set():
                db.submit("busy", 1)
                db.claim("busy").complete()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not faults, faults


def test_a_child_works_while_the_parent_has_threads_within_transactions(db, lease):
    with busy_threads(db):
        for n in range(8):
            db.submit("q", n, id=f"round-{n}")
            assert forked(lambda: work(db, lease))[1] == 60.0
    assert db.stats("q").queues[0].done == 8


LOCKS = {
    "writes": lambda db, lease: lane(db).lock,
    "heartbeats": lambda db, lease: lane(db, "beat").lock,
    "reads": lambda db, lease: lane(db, "read").lock,
    "keeper": lambda db, lease: db.keeper._condition,
    "heartbeats of a process beside": lambda db, lease: db.keeper._starting,
    "a beat before a process beside": lambda db, lease: db.keeper._tending,
    "beliefs": lambda db, lease: beliefs._Guard.lock,
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_that_another_thread_had_at_the_fork_does_not_hold_up_the_child(db, lease, monkeypatch, name):
    monkeypatch.setattr(engine, "FORK_WAIT_S", 0.05)

    def keep_and_work():
        with lease.keep(heartbeat="process" if "beside" in name else "thread"):
            return work(db, lease)

    with held_elsewhere(LOCKS[name](db, lease)):
        assert forked(keep_and_work) == ["child", 60.0]
    goes_on(db)


def test_no_lock_of_the_library_is_missing_above(db, lease):
    """Whoever adds a lock has to say what becomes of it in a child."""
    owners = [db, db.keeper, db.backend, db.backend.store, db.backend.store.identity, lease.belief, lane(db)]
    kinds = (type(threading.Lock()), type(threading.RLock()), threading.Condition)
    found = {(type(owner).__name__, name) for owner in owners for name, value in vars(owner).items()
             if isinstance(value, kinds)}  # fmt: skip
    assert found == {("SharedLane", "lock"), *(("Keeper", name) for name in ("_condition", "_starting", "_tending"))}


def test_a_child_keeps_locks_of_its_own_so_nobody_removes_the_log_under_it(db, lease, tmp_path, monkeypatch):
    """A lane that was not closed before the fork would leave the child without a lock on the file."""
    monkeypatch.setattr(engine, "FORK_WAIT_S", 0.05)

    def submit_twice(child):
        child.say(db.submit("q", 1, id="first").id)
        child.wait()
        db.submit("q", 1, id="second")
        return [task.id for task in db.tasks()]

    with held_elsewhere(lane(db).lock):
        child = Child(submit_twice)
    with child:
        assert child.hear() == "first"
        db.close()
        assert is_locked(path_of(tmp_path)), "by the child alone"
        child.go_on()
        assert child.hear() == ["parent", "child", "first", "second"]


def test_a_child_that_was_forked_in_the_middle_of_a_transaction_refuses_rather_than_guesses(db, lease, monkeypatch):
    monkeypatch.setattr(engine, "FORK_WAIT_S", 0.05)
    inside, go_on = Gate(), Gate()

    def slow(connection):
        connection.execute("UPDATE meta SET lapse_count = 7")
        inside.set()
        go_on.pass_through()

    thread = threading.Thread(target=lane(db).transact, args=("BEGIN IMMEDIATE", slow))
    thread.start()
    inside.pass_through()

    def refused():
        codes = []
        for verb in (lambda: db.claim("q"), lease.renew, db.tasks, lambda: relet.connect(db.backend.url)):
            with pytest.raises(Unavailable, match="Start the process by spawn or exec") as told:
                verb()
            codes.append(told.value.code)
        return codes

    try:
        assert forked(refused) == ["RELET-FORKED"] * 4
    finally:
        go_on.set()
        thread.join()
    assert lane(db).connection().execute("SELECT lapse_count FROM meta").fetchall() == [(7,)]
    assert lease.renew() == 60.0


def test_two_threads_that_fork_at_once_let_go_of_their_own_locks_only(db):
    prepared, checked = Gate(), Gate()

    def fork_slowly():
        engine._before_fork()
        prepared.set()
        checked.pass_through()
        engine._after_fork_in_parent()

    thread = threading.Thread(target=fork_slowly)
    thread.start()
    prepared.pass_through()
    engine._after_fork_in_parent()
    assert not lane(db).lock.acquire(timeout=0.01), "it is still the other thread's"
    checked.set()
    thread.join()
    assert lane(db).lock.acquire(timeout=5)
    lane(db).lock.release()
    assert engine._HELD == {}


def test_a_child_sees_the_time_of_its_parent_and_gives_out_larger_tokens(db, lease):
    db.clock.advance(30)
    token, left = forked(lambda: [db.claim("q").token, round(db.lease(lease.handle).expires_in)])
    assert token > lease.token
    assert left == 30


def test_a_store_in_memory_is_a_copy_in_the_child():
    with relet.connect("sqlite://") as db:
        db.submit("q", 1, id="t")

        def child():
            db.submit("q", 2)
            return [db.claim("q").task_id, len(db.tasks())]

        assert forked(child) == ["t", 2]
        assert len(db.tasks()) == 1
        assert db.claim("q").task_id == "t"
