"""Callers that wait for each other share one commit; each is judged, undone, refused and told by itself."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import apsw
import pytest

from relet.core.errors import Invalid, LeaseLost, OutcomeUnknown, Unavailable
from relet.core.rules.submit import NewTask, Submit
from relet.store.sqlite import group as groups
from relet.store.sqlite import lane as lanes
from tests.core.talk import RAW
from tests.store.disk import failing_disk, once
from tests.store.forking import forked, held_elsewhere
from tests.store.inside import ask, contents, lane
from tests.waiting import Gate, eventually

LAPSES = "SELECT lapse_count FROM meta"


@pytest.fixture(autouse=True)
def long_groups(monkeypatch):
    """However slow the machine, a group takes in all who wait."""
    monkeypatch.setattr(groups, "SECONDS_MAX", 30)


@pytest.fixture
def commits(monkeypatch):
    """Grows by one with each commit."""
    real, counted = lanes.commit, []

    def commit(cursor):
        counted.append(cursor)
        real(cursor)

    monkeypatch.setattr(lanes, "commit", commit)
    return counted


def all_at_once(db, *works):
    """What each came to, an answer or what was raised. All wait in this order before the first may begin."""
    outcomes: list = [None] * len(works)

    def run(n, work):
        try:
            outcomes[n] = work()
        except BaseException as raised:
            outcomes[n] = raised

    threads = []
    with held_elsewhere(lane(db).lock):
        for n, work in enumerate(works):
            threads.append(threading.Thread(target=run, args=(n, work)))
            threads[-1].start()
            eventually(lambda n=n: len(lane(db)._line) == n + 1)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive(), "somebody was never told"
    return outcomes


def shared(db, work):
    """Some work of the test's own, as a request would be done."""
    return lambda: lane(db).share(work)


def count_one(connection):
    connection.execute("UPDATE meta SET lapse_count = lapse_count + 1")
    return "counted"


def counted(tmp_path):
    return ask(tmp_path, LAPSES)[0][0]


def test_those_who_wait_are_answered_together_and_each_gets_its_own_answer(db, commits):
    tasks = all_at_once(db, *[lambda n=n: db.submit("q", n, id=f"t{n}") for n in range(12)])
    assert [task.id for task in tasks] == [f"t{n}" for n in range(12)]
    assert len(commits) == 1
    del commits[:]
    leases = all_at_once(db, *[lambda: db.claim("q")] * 13)
    assert len(commits) == 1
    assert leases.count(None) == 1
    held = [lease for lease in leases if lease is not None]
    assert len({lease.token for lease in held}) == len({lease.task_id for lease in held}) == 12
    assert all(db.task(lease.task_id).token == lease.token for lease in held)
    all_at_once(db, *[lambda lease=lease: lease.complete(lease.input) for lease in held])
    assert [db.task(f"t{n}").result for n in range(12)] == list(range(12))
    assert [[event.kind for event in db.history(f"t{n}")] for n in range(12)] == [
        ["submitted", "claimed", "completed"]
    ] * 12


def test_many_threads_on_one_client_commit_less_often_than_they_ask(db, commits):
    def work(name):
        for n in range(10):
            db.submit("q", n, id=f"{name}-{n}")
            db.claim("q").complete(name)

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(work, range(16)))
    assert db.stats("q").queues[0].done == 160
    assert len(commits) < 3 * 160


def test_a_group_is_bounded_and_whoever_is_left_comes_next(db, commits, monkeypatch, tmp_path):
    monkeypatch.setattr(groups, "MEMBERS_MAX", 3)
    assert all_at_once(db, *[shared(db, count_one)] * 7) == ["counted"] * 7
    assert len(commits) == 3
    assert counted(tmp_path) == 7


def test_a_group_that_takes_long_lets_nobody_else_in(db, commits, monkeypatch):
    monkeypatch.setattr(groups, "SECONDS_MAX", 0)
    all_at_once(db, *[shared(db, count_one)] * 3)
    assert len(commits) == 3


def test_a_lone_caller_meets_no_savepoint(db):
    said = []
    lane(db).connection().trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: said.append(event["sql"]))
    db.submit("q", 1)
    lane(db).connection().trace_v2(0)
    assert len(said) > 3
    assert not [sql for sql in said if "SAVEPOINT" in sql.upper()]


def test_a_member_that_raises_is_undone_alone(db, commits, tmp_path):
    def changes_its_mind(connection):
        count_one(connection)
        raise ValueError("changed its mind")

    one, raised, other = all_at_once(db, *[shared(db, w) for w in (count_one, changes_its_mind, count_one)])
    assert (one, other) == ("counted", "counted")
    assert isinstance(raised, ValueError)
    assert counted(tmp_path) == 2
    assert len(commits) == 1


def test_a_statement_that_fails_is_told_to_its_member_alone_and_in_our_words(db, tmp_path):
    def fails(connection):
        count_one(connection)
        connection.execute("SELECT * FROM nowhere")

    one, raised, other = all_at_once(db, *[shared(db, work) for work in (count_one, fails, count_one)])
    assert (one, other, raised.code) == ("counted", "counted", "RELET-IO")
    assert counted(tmp_path) == 2


def test_a_leader_that_raises_takes_nobody_with_it(db, tmp_path):
    def changes_its_mind(connection):
        count_one(connection)
        raise ValueError("changed its mind")

    raised, *others = all_at_once(db, *[shared(db, work) for work in (changes_its_mind, count_one, count_one)])
    assert isinstance(raised, ValueError)
    assert others == ["counted"] * 2
    assert counted(tmp_path) == 2


def test_a_member_that_is_refused_is_told_so_and_the_lapse_that_it_saw_is_kept(db, commits):
    db.submit("q", 1, id="short", ttl=1)
    short = db.claim("q")
    db.clock.advance(1)
    del commits[:]
    one, refused, other = all_at_once(
        db, lambda: db.submit("q", 1, id="a").id, lambda: short.complete(1), lambda: db.submit("q", 1, id="b").id
    )
    assert len(commits) == 2, "one for all three, and one for the feed of refusals"
    assert (one, other, type(refused), refused.reason) == ("a", "b", LeaseLost, "expired")
    assert [event.kind for event in db.history("short")][-1] == "lapsed"
    assert [(item.verb, item.token) for item in db.rejections()] == [("complete", short.token)]


def test_the_clock_is_read_anew_for_each_member(db):
    """Judged by the time at which the group began, this lease would be completed after its end."""
    db.submit("q", 1, ttl=60)
    lease = db.claim("q")
    first, refused = all_at_once(db, shared(db, lambda _: db.clock.advance(60)), lambda: lease.complete(1))
    assert first is None
    assert refused.reason == "expired"


def test_nobody_is_told_before_the_commit(db, monkeypatch):
    real, told, at_commit = lanes.commit, [], []

    def commit(cursor):
        at_commit.append(list(told))
        real(cursor)

    def work(n):
        lane(db).share(count_one)
        told.append(n)

    monkeypatch.setattr(lanes, "commit", commit)
    all_at_once(db, *[lambda n=n: work(n) for n in range(5)])
    assert at_commit == [[]]
    assert sorted(told) == list(range(5))


def test_where_the_engine_ends_the_transaction_each_is_done_again_alone(db, commits, tmp_path):
    tries = []

    def ends_it(connection):
        tries.append(None)
        connection.execute("ROLLBACK")  # as SQLite does by itself at some errors of the disk
        raise apsw.FullError("full")

    outcomes = all_at_once(db, *[shared(db, work) for work in (count_one, count_one, ends_it, count_one)])
    assert [outcomes[n] for n in (0, 1, 3)] == ["counted"] * 3
    assert outcomes[2].code == "RELET-FULL"
    assert counted(tmp_path) == 3
    assert len(tries) == 2, "in the group, and alone"
    assert len(commits) == 3


@pytest.fixture
def disk():
    with failing_disk() as disk:
        yield disk


def test_a_disk_that_is_full_at_the_commit_of_many_undoes_it_and_each_is_done_again_alone(disk, db, commits):
    del commits[:]
    disk.fails = once("write", apsw.FullError("full"))
    tasks = all_at_once(db, *[lambda n=n: db.submit("q", n, id=f"t{n}") for n in range(4)])
    assert [task.id for task in tasks] == [f"t{n}" for n in range(4)]
    assert len(commits) == 5
    assert {task.id for task in db.tasks()} == {f"t{n}" for n in range(4)}


def test_a_commit_that_has_no_answer_is_an_unknown_outcome_for_all(db, monkeypatch, tmp_path):
    real = lanes.commit

    def deaf(cursor):
        real(cursor)
        monkeypatch.setattr(lanes, "commit", real)
        raise OutcomeUnknown("the answer was lost", code="RELET-COMMIT")

    monkeypatch.setattr(lanes, "commit", deaf)
    outcomes = all_at_once(db, *[shared(db, count_one)] * 4)
    assert [(type(told), told.code) for told in outcomes] == [(OutcomeUnknown, "RELET-COMMIT")] * 4
    assert counted(tmp_path) == 4, "it had been kept"


def test_requests_that_are_safe_to_repeat_see_nothing_of_it(db, monkeypatch):
    real = lanes.commit

    def deaf(cursor):
        real(cursor)
        monkeypatch.setattr(lanes, "commit", real)
        raise OutcomeUnknown("the answer was lost", code="RELET-COMMIT")

    db.submit_many("q", range(4))
    monkeypatch.setattr(lanes, "commit", deaf)
    leases = all_at_once(db, *[lambda: db.claim("q")] * 4)
    assert len({lease.task_id for lease in leases}) == len({lease.token for lease in leases}) == 4


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
    assert os.getpid(), "the parent goes on"
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


def test_a_task_that_two_submit_at_once_is_made_once(db):
    request = Submit(queue="q", kind="q", tasks=[NewTask(id="same", input=RAW)])
    answers = all_at_once(db, *[lambda: db.backend.call(request)[0].created] * 4)
    assert sorted(answers) == [False, False, False, True]
    other = Submit(queue="q", kind="other", tasks=[NewTask(id="same", input=RAW)])
    mixed = all_at_once(db, lambda: db.backend.call(other), lambda: db.submit("q", 1, id="new").id)
    assert (mixed[0].code, mixed[1]) == ("RELET-CONFLICT", "new")
    assert not isinstance(mixed[0], Invalid)
