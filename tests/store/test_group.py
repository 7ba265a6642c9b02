"""Callers that wait for each other share one commit; each is judged, undone, refused and told by itself."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import apsw
import pytest

from relet.core.errors import Invalid, LeaseLost, OutcomeUnknown
from relet.core.rules.submit import NewTask, Submit
from relet.store.sqlite import group as groups
from relet.store.sqlite import lane as lanes
from tests.core.talk import RAW
from tests.store.disk import failing_disk, once
from tests.store.inside import lane
from tests.store.sharing import all_at_once, count_one, counted, shared


@pytest.fixture(autouse=True)
def long_groups(monkeypatch):
    """However slow the machine, a group takes in all who wait."""
    monkeypatch.setattr(groups, "SECONDS_MAX", 30)


@pytest.fixture
def commits(db, monkeypatch):
    """Grows by one with each commit of writers."""
    real, counted = lanes.commit, []

    def commit(cursor):
        if cursor.connection is lane(db).connection():
            counted.append(cursor)
        real(cursor)

    monkeypatch.setattr(lanes, "commit", commit)
    return counted


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


@pytest.mark.parametrize(("statement", "code"), [
    ("SELECT * FROM nowhere", "RELET-IO"), ("SELECT cast(x'ff' AS TEXT)", "RELET-DAMAGED"),
])  # fmt: skip
def test_what_fails_is_told_to_its_member_alone_and_in_our_words(db, tmp_path, statement, code):
    def fails(connection):
        count_one(connection)
        connection.execute(statement).fetchall()

    one, raised, other = all_at_once(db, *[shared(db, work) for work in (count_one, fails, count_one)])
    assert (one, other, raised.code) == ("counted", "counted", code)
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
    assert len(commits) == 1, "one for all three; the feed of refusals has a lane of its own"
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


def test_a_leader_that_goes_alone_waits_no_longer_than_its_caller_said(db, tmp_path):
    with closing(apsw.Connection(db.place)) as other:

        def ends_it(connection):
            if connection.in_transaction and not other.in_transaction:
                connection.execute("ROLLBACK")
                other.execute("BEGIN IMMEDIATE")
            raise apsw.FullError("full")

        def lead():
            try:
                return lane(db).share(count_one, 1_000)
            finally:
                if other.in_transaction:
                    other.execute("ROLLBACK")

        outcomes = all_at_once(db, lead, shared(db, ends_it))
    assert outcomes[0].code == "RELET-BUSY"
    assert re.search(r"for (0\.\d+|1) s;", str(outcomes[0])), outcomes[0]


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


def test_a_task_that_two_submit_at_once_is_made_once(db):
    request = Submit(queue="q", kind="q", tasks=[NewTask(id="same", input=RAW)])
    answers = all_at_once(db, *[lambda: db.backend.call(request)[0].created] * 4)
    assert sorted(answers) == [False, False, False, True]
    other = Submit(queue="q", kind="other", tasks=[NewTask(id="same", input=RAW)])
    mixed = all_at_once(db, lambda: db.backend.call(other), lambda: db.submit("q", 1, id="new").id)
    assert (mixed[0].code, mixed[1]) == ("RELET-CONFLICT", "new")
    assert not isinstance(mixed[0], Invalid)
