"""Turns between processes: who waits for the gate gets it, and whoever keeps it too long is passed by."""

import fcntl
import os
import signal
import threading
from contextlib import contextmanager

import pytest

import relet
from relet.core.errors import Unavailable
from relet.core.rules.renew import Renew
from relet.store.sqlite import engine
from relet.store.sqlite import gate as gates
from tests.store.forking import Child, held_elsewhere
from tests.store.inside import lane, path_of
from tests.store.test_busy import write_lock
from tests.waiting import eventually

FOREVER_S = 30
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def gate_path(folder):
    return path_of(folder).with_name("relet.db-gate")


@contextmanager
def held(folder):
    """Another process is within the gate; told apart by its descriptor, which is all that counts."""
    descriptor = gates.open_gate(gate_path(folder))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_free(folder):
    descriptor = gates.open_gate(gate_path(folder))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


@pytest.fixture
def gate(db, monkeypatch):
    """The gate of the write lane, at which waits are long enough to be seen."""
    monkeypatch.setattr(gates, "SECONDS_MAX", FOREVER_S)
    return lane(db)._gate


def waits(gate):
    return eventually(lambda: gate._ticket)


def test_a_transaction_that_writes_is_within_the_gate_and_nothing_else_is(db, gate, tmp_path):
    seen = []
    lane(db).transact("BEGIN IMMEDIATE", lambda _: seen.append(is_free(tmp_path)))
    lane(db).share(lambda _: seen.append(is_free(tmp_path)))
    assert seen == [False, False]
    assert is_free(tmp_path)
    with held(tmp_path):
        assert db.tasks() == []


def test_who_finds_it_taken_waits_for_its_turn(db, gate, tmp_path):
    with held(tmp_path):
        thread = threading.Thread(target=db.submit, args=("q", 1), kwargs={"id": "t"})
        thread.start()
        waits(gate)
        assert db.tasks() == []
    thread.join(10)
    assert [task.id for task in db.tasks()] == ["t"]
    assert is_free(tmp_path)


def test_the_next_turn_comes_as_the_first_one_did(db, gate, tmp_path):
    for turn in range(3):
        with held(tmp_path):
            thread = threading.Thread(target=db.submit, args=("q", turn))
            thread.start()
            waits(gate)
        thread.join(10)
        db.submit("q", "and one that finds it free")
        assert is_free(tmp_path)
    assert len(db.tasks()) == 6


def test_a_heartbeat_takes_its_turn_too(db, gate, tmp_path):
    db.submit("q", 1)
    lease = db.claim("q")
    with held(tmp_path):
        thread = threading.Thread(target=lease.renew)
        thread.start()
        waits(lane(db, "beat")._gate)
    thread.join(10)
    assert is_free(tmp_path)


def test_nobody_waits_for_a_turn_longer_than_it_was_told(db, gate, tmp_path):
    """Then it goes on without, and may yet find the store free."""
    db.submit("q", 1)
    lease = db.claim("q")
    with held(tmp_path):
        (renewed,) = db.backend.call(Renew(handles=[lease.belief.grant.handle]), patience_ms=30)
        assert renewed.left_ms == 60_000
        lane(db).share(lambda _: None, 30)
    assert not gate._ignored_until, "a short patience says nothing about whoever is within"


def test_whoever_waits_for_a_turn_keeps_half_of_its_time_for_the_store_and_then_passes_by(db, monkeypatch, tmp_path):
    """A stopped process within the gate takes a beat of a short lease, and not each of them until it is lost."""
    beat, waited = lane(db, "beat")._gate, []
    monkeypatch.setattr(beat, "_queue", lambda seconds: waited.append(seconds) or False)
    db.submit("q", 1)
    lease = db.claim("q", ttl=0.5)
    with held(tmp_path):
        for _ in range(2):
            assert db.backend.call(Renew(handles=[lease.belief.grant.handle]), patience_ms=80)[0].left_ms
    assert waited == [0.04]


def test_an_error_in_the_transaction_leaves_the_gate(db, gate, tmp_path):
    with pytest.raises(ValueError, match="changed its mind"):
        lane(db).share(lambda _: int("changed its mind"))
    assert is_free(tmp_path)


def test_who_keeps_it_too_long_is_passed_by_and_not_waited_for_again_at_once(db, monkeypatch, tmp_path):
    monkeypatch.setattr(gates, "SECONDS_MAX", 0.03)
    monkeypatch.setattr(gates, "IGNORED_S", FOREVER_S)
    tickets = []
    real = gates._Ticket
    monkeypatch.setattr(gates, "_Ticket", lambda: tickets.append(real()) or tickets[-1])
    with held(tmp_path):
        for n in range(4):
            db.submit("q", n)
    assert len(tickets) == 1
    assert len(db.tasks()) == 4
    assert eventually(lambda: is_free(tmp_path)), "the turn that came too late was given back"


def test_it_is_looked_at_again_after_a_while(db, monkeypatch, tmp_path):
    monkeypatch.setattr(gates, "SECONDS_MAX", 0.03)
    monkeypatch.setattr(gates, "IGNORED_S", 0)
    with held(tmp_path):
        db.submit("q", 1)
    monkeypatch.setattr(gates, "SECONDS_MAX", FOREVER_S)
    seen = []
    eventually(lambda: is_free(tmp_path))
    lane(db).share(lambda _: seen.append(is_free(tmp_path)))
    assert seen == [False]


def keeper_of_the_gate(folder):
    """A process that sits within the gate, outside of any transaction."""

    def sit(child):
        with held(folder):
            child.say("inside")
            child.wait()

    return Child(sit)


def test_a_process_that_is_stopped_within_the_gate_holds_up_nobody(db, monkeypatch, tmp_path):
    monkeypatch.setattr(gates, "SECONDS_MAX", 0.03)
    with keeper_of_the_gate(tmp_path) as child:
        assert child.hear() == "inside"
        os.kill(child.pid, signal.SIGSTOP)
        assert db.submit("q", 1).created
        assert db.claim("q").complete() is None


def test_a_process_that_dies_within_the_gate_frees_it(db, gate, tmp_path):
    with keeper_of_the_gate(tmp_path) as child:
        assert child.hear() == "inside"
        thread = threading.Thread(target=db.submit, args=("q", 1))
        thread.start()
        waits(gate)
        os.kill(child.pid, signal.SIGKILL)
        thread.join(10)
        assert not thread.is_alive()
    assert len(db.tasks()) == 1


def test_an_interrupt_while_waiting_for_a_turn_gives_the_turn_up(db, gate, tmp_path):
    main = threading.get_ident()

    tickets = []

    def interrupt():
        tickets.append(waits(gate))
        signal.pthread_kill(main, signal.SIGINT)

    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    helper = threading.Thread(target=interrupt)
    try:
        with held(tmp_path):
            helper.start()
            with pytest.raises(KeyboardInterrupt):
                db.submit("q", 1)
            assert not tickets[0].tear(), "nobody is called for it any more"
    finally:
        signal.signal(signal.SIGINT, kept)
        helper.join()
    assert eventually(lambda: is_free(tmp_path))
    assert db.tasks() == []
    assert db.submit("q", 1).created


@pytest.mark.parametrize("waited", [False, True], ids=["found it free", "waited for it"])
def test_a_child_that_is_forked_within_the_gate_neither_keeps_nor_frees_its_parents_place(
    db, gate, tmp_path, monkeypatch, waited
):
    monkeypatch.setattr(engine, "FORK_WAIT_S", 0.05)
    if waited:
        with held(tmp_path):
            thread = threading.Thread(target=gate.enter, args=(FOREVER_S,))
            thread.start()
            waits(gate)
        thread.join(10)
    else:
        gate.enter(FOREVER_S)

    def submit(child):
        monkeypatch.setattr(gates, "SECONDS_MAX", 0.03)
        db.submit("q", 1)
        child.say(is_free(tmp_path))
        child.wait()

    with held_elsewhere(lane(db).lock):
        child = Child(submit)
    with child:
        assert child.hear() is False, "the parent is within"
        gate.leave()
        assert is_free(tmp_path), "though the child lives on"


def test_a_child_takes_turns_with_its_parent(db, gate, tmp_path):
    db.submit("q", 1)

    def submit(child):
        child.wait()
        return db.submit("q", 2, id="by the child").id

    with held(tmp_path):
        thread = threading.Thread(target=db.submit, args=("q", 3))
        thread.start()
        waits(gate)
    thread.join(10)
    with Child(submit) as child:
        with held(tmp_path):
            child.go_on()
        assert child.hear() == "by the child"
    assert db.submit("q", 4).created


def test_no_program_that_is_started_inherits_a_place(db, gate):
    db.submit("q", 1)
    assert not os.get_inheritable(gate._descriptor)


def test_a_store_in_memory_has_no_gate():
    with relet.connect("sqlite://") as db:
        assert lane(db)._gate is None
        assert db.submit("q", 1).created


def test_a_gate_that_cannot_be_opened_stands_in_nobodys_way(connect, clock, tmp_path):
    gate_path(tmp_path).mkdir()
    db = connect(clock)
    assert db.submit("q", 1).created
    assert db.claim("q").complete() is None


def test_a_closed_store_does_not_open_its_gate_again(connect, clock):
    db = connect(clock)
    db.close()
    with pytest.raises(Unavailable):
        db.submit("q", 1)
    assert lane(db)._gate._descriptor is None


def test_a_process_that_may_start_no_thread_goes_on_without(db, gate, tmp_path, monkeypatch):
    class NoThread(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    with held(tmp_path), monkeypatch.context() as bare:
        bare.setattr(gates.threading, "Thread", NoThread)
        assert db.submit("q", 1).created
    assert db.submit("q", 2).created


def test_who_waits_for_a_program_that_knows_no_gate_does_not_keep_the_others_from_it(db, gate, tmp_path):
    with write_lock(tmp_path), pytest.raises(Unavailable):
        lane(db).share(lambda _: None, 30)
    assert is_free(tmp_path)


def test_a_closed_store_keeps_no_descriptor_and_no_thread(connect, clock, monkeypatch, tmp_path):
    monkeypatch.setattr(gates, "SECONDS_MAX", FOREVER_S)
    db = connect(clock)
    with held(tmp_path):
        thread = threading.Thread(target=db.submit, args=("q", 1))
        thread.start()
        waits(lane(db)._gate)
    thread.join(10)
    descriptors = [lane(db)._gate._descriptor, lane(db)._gate._usher.descriptor]
    db.close()
    eventually(lambda: not [one for one in threading.enumerate() if one.name == "relet-gate"])
    for descriptor in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
