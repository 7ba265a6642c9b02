"""A history is a chain from the task's last event back: whole, whoever wrote it and in whatever order."""

import apsw
import pytest

from relet.core.model import Cause
from relet.core.rules.inspect import Changes, History
from tests.store.inside import ask, lane


def causes(db, task):
    return [Cause(event.kind) for event in db.history(task)]


def numbers(db, task, **page):
    return [event.seq for event in db.backend.call(History(task_id=task, **page))]


@pytest.fixture
def long(db):
    """A task with many events, among those of another one."""
    db.submit_many("q", [1, 2], ["other", "long"])
    other, lease = db.claim_many("q", 2)
    for page in range(7):
        lease.save(page)
        other.save(page)
    lease.fail("no", delay=0)
    return "long"


def test_every_event_of_a_task_and_none_of_another_is_in_its_history(db, tmp_path, long):
    expected = ask(tmp_path, "SELECT seq FROM events WHERE task_seq = 2 ORDER BY seq")
    assert [(seq,) for seq in numbers(db, long)] == expected
    assert causes(db, long) == [Cause.SUBMITTED, Cause.CLAIMED, *[Cause.SAVED] * 7, Cause.RETRIED]


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_history_is_read_page_by_page_from_any_event_on(db, long, limit):
    whole, read = numbers(db, long), []
    while page := numbers(db, long, after=read[-1] if read else 0, limit=limit):
        read += page
    assert read == whole
    for n, seq in enumerate(whole):
        assert numbers(db, long, after=seq) == whole[n + 1 :]
        events = db.backend.call(Changes(after=seq, task_id=long)).events
        assert [event.seq for event in events] == whole[n + 1 :]


def test_two_events_of_one_task_in_one_transaction_are_both_in_its_history(db):
    db.submit("q", 1, id="t", ttl=60)
    db.claim("q")
    db.clock.advance(60)
    assert db.claim("q").task_id == "t"
    assert causes(db, "t") == [Cause.SUBMITTED, Cause.CLAIMED, Cause.LAPSED, Cause.CLAIMED]


def test_an_operators_verbs_are_in_the_history_too(db):
    db.submit_many("q", [1, 2], ["a", "b"])
    db.claim("q")
    db.cancel_many(queue="q", reason="enough")
    db.requeue("b")
    assert causes(db, "a") == [Cause.SUBMITTED, Cause.CLAIMED, Cause.CANCEL_REQUESTED]
    assert causes(db, "b") == [Cause.SUBMITTED, Cause.CANCELLED, Cause.REQUEUED]


def test_within_the_callers_own_transaction_histories_are_whole_as_well(db, tmp_path):
    connection = apsw.Connection(str(tmp_path / "relet.db"))
    connection.execute("BEGIN IMMEDIATE")
    db.submit("q", 1, id="t", tx=connection)
    db.submit_many("q", [2, 3], ["u", "v"], tx=connection)
    connection.execute("COMMIT")
    assert causes(db, "t") == causes(db, "u") == causes(db, "v") == [Cause.SUBMITTED]
    connection.close()


def test_what_was_undone_leaves_no_gap_in_a_history(db):
    db.submit("q", 1, id="t")
    lease = db.claim("q")
    lane(db).connection().execute(
        "CREATE TEMP TRIGGER no BEFORE UPDATE OF result ON tasks BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with pytest.raises(Exception, match="no"):
        lease.complete(1)
    lane(db).connection().execute("DROP TRIGGER no")
    lease.complete(1)
    assert causes(db, "t") == [Cause.SUBMITTED, Cause.CLAIMED, Cause.COMPLETED]
