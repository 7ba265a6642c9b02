"""Whoever waits for a shared commit may be interrupted, give up, be forked or left behind: nobody else is held up."""

import signal
import threading

import pytest

from relet.core.errors import OutcomeUnknown, Unavailable
from relet.store.sqlite import group as groups
from relet.store.sqlite import lane as lanes
from tests.store.forking import forked, held_elsewhere
from tests.store.inside import contents, lane
from tests.store.sharing import all_at_once, count_one, counted, shared
from tests.waiting import Gate, eventually


@pytest.fixture(autouse=True)
def long_groups(monkeypatch):
    """However slow the machine, a group takes in all who wait."""
    monkeypatch.setattr(groups, "SECONDS_MAX", 30)


class Interrupted(KeyboardInterrupt):
    """A signal at the worst moment."""


def test_an_interrupt_of_the_leader_in_a_members_work_is_the_leaders_alone(db, tmp_path):
    left = [Interrupted()]

    def interrupted_once(connection):
        count_one(connection)
        if left:
            raise left.pop()
        return "counted"

    outcomes = all_at_once(db, *[shared(db, work) for work in (count_one, count_one, interrupted_once, count_one)])
    assert isinstance(outcomes[0], Interrupted)
    assert outcomes[1:] == ["counted"] * 3
    assert counted(tmp_path) == 3


def test_a_leader_that_is_interrupted_in_the_commit_leaves_members_who_know_what_they_know(db, monkeypatch):
    real = lanes.commit

    def interrupted(cursor):
        real(cursor)
        monkeypatch.setattr(lanes, "commit", real)
        raise Interrupted

    monkeypatch.setattr(lanes, "commit", interrupted)
    leader, *others = all_at_once(db, *[shared(db, count_one)] * 3)
    assert isinstance(leader, Interrupted)
    assert [type(told) for told in others] == [OutcomeUnknown] * 2


@pytest.mark.parametrize("ahead", [0, 2], ids=["next in line", "behind others"])
def test_an_interrupt_while_waiting_does_nothing_and_holds_up_nobody(db, tmp_path, ahead):
    """In the main thread, where signals arrive."""
    before, main, counts = contents(tmp_path), threading.get_ident(), []
    others = [threading.Thread(target=lambda: counts.append(lane(db).share(count_one))) for _ in range(ahead + 2)]

    def interrupt():
        eventually(lambda: len(lane(db)._line) == ahead + 1)
        signal.pthread_kill(main, signal.SIGINT)

    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with held_elsewhere(lane(db).lock):
            for number, thread in enumerate(others[:ahead], 1):
                thread.start()
                eventually(lambda number=number: len(lane(db)._line) == number)
            signaller = threading.Thread(target=interrupt)
            signaller.start()
            with pytest.raises(KeyboardInterrupt):
                db.submit("q", 1)
            signaller.join()
            assert len(lane(db)._line) == ahead
            for thread in others[ahead:]:
                thread.start()
    finally:
        signal.signal(signal.SIGINT, kept)
    for thread in others:
        thread.join(20)
    assert counts == ["counted"] * len(others)
    assert contents(tmp_path) == before


def test_who_gives_up_waiting_is_not_answered_later(db, tmp_path):
    with held_elsewhere(lane(db).lock):
        with pytest.raises(Unavailable) as busy:
            lane(db).share(count_one, 30)
        assert busy.value.code == "RELET-BUSY"
        assert not lane(db)._line
    db.submit("q", 1)
    assert counted(tmp_path) == 0


def test_those_who_wait_are_found_though_nobody_wakes_them(db, monkeypatch, tmp_path):
    """An interrupt may have kept whoever should have done it."""
    monkeypatch.setattr(groups.Member, "rouse", lambda member: None)
    assert all_at_once(db, *[shared(db, count_one)] * 5) == ["counted"] * 5
    assert counted(tmp_path) == 5


def test_a_place_at_the_lock_that_somebody_left_behind_is_taken_over(db):
    lane(db)._heir = groups.Member(count_one)
    assert all_at_once(db, *[shared(db, count_one)] * 3) == ["counted"] * 3
    assert lane(db)._heir is None


def test_a_member_whose_leader_vanished_does_not_wait_for_ever(db):
    group, member = groups.Group(lane(db)._line, "", None), groups.Member(count_one)
    member.group = group
    assert lane(db)._is_settled(member)
    with pytest.raises(OutcomeUnknown):
        lane(db)._outcome(member, 0)
    assert db.submit("q", 1).created


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_while_others_wait_works_and_so_do_they(db, tmp_path, monkeypatch):
    from relet.store.sqlite import engine

    monkeypatch.setattr(engine, "FORK_WAIT_S", 0.05)
    children = []

    def fork():
        children.append(forked(lambda: [db.submit("q", 1, id="by the child").id, len(lane(db)._line)]))
        return "forked"

    outcomes: list = []
    threads = [threading.Thread(target=lambda: outcomes.append(lane(db).share(count_one))) for _ in range(3)]
    with held_elsewhere(lane(db).lock):
        for number, thread in enumerate(threads, 1):
            thread.start()
            eventually(lambda number=number: len(lane(db)._line) == number)
        fork()
    for thread in threads:
        thread.join(20)
    assert children == [["by the child", 0]]
    assert outcomes == ["counted"] * 3
    assert counted(tmp_path) == 3
    assert {task.id for task in db.tasks()} == {"by the child"}


def test_a_signal_handler_that_asks_while_its_thread_waits_is_answered(db):
    """Its thread is in the line already; the outer request goes on after it."""
    heard = []

    def handler(*_):
        heard.append(db.submit("q", 1, id="from the handler").id)

    def release():
        eventually(lambda: len(lane(db)._line) == 1)
        signal.pthread_kill(main, signal.SIGUSR1)
        eventually(lambda: len(lane(db)._line) == 2)
        go_on.set()

    main, go_on, held = threading.get_ident(), Gate(), Gate()

    def hold():
        with lane(db).lock:
            held.set()
            go_on.pass_through()

    kept = signal.signal(signal.SIGUSR1, handler)
    holder, helper = threading.Thread(target=hold), threading.Thread(target=release)
    try:
        holder.start()
        held.pass_through()
        helper.start()
        assert db.submit("q", 2, id="outer").id == "outer"
    finally:
        signal.signal(signal.SIGUSR1, kept)
        holder.join()
        helper.join()
    assert heard == ["from the handler"]
    assert {task.id for task in db.tasks()} == {"from the handler", "outer"}


def test_a_closed_store_refuses_all_who_waited(db):
    lane(db).closed = True
    refused = all_at_once(db, *[lambda n=n: db.submit("q", n) for n in range(3)])
    lane(db).closed = False
    assert [told.code for told in refused] == ["RELET-CLOSED"] * 3
