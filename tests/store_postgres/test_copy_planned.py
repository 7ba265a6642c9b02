"""What is told of a copy, or of its way back, before it is made: nothing is changed, and it ends as that would."""

from urllib.parse import quote

import psycopg
import pytest

from relet.core.errors import Conflict, Error, Refused
from relet.testing import Clock
from tests.store_postgres.copies import Move, with_two_tasks

pytestmark = pytest.mark.postgres


@pytest.fixture
def small(tmp_path, database):
    return with_two_tasks(Move(tmp_path, Clock(), database))


def do_there(move, statements):
    with psycopg.connect(move.url, autocommit=True) as connection:
        connection.execute(statements)


def test_bytes_are_not_brought_for_a_place_that_is_taken(small):
    with small.source() as db:
        lease = db.claim("q")
        lease.attach("page", b"bytes")
        lease.release()
    with small.target() as db:
        db.submit("theirs", 1)
    with pytest.raises(Conflict, match="it holds the tasks"):
        small.copy()
    assert list((small.folder / "copied").rglob("sha256/*/*")) == []


def shut_for_another(small):
    do_there(small, "UPDATE relet.meta SET min_reader = 1000000000, store_id = repeat('0', 32)")


def with_tasks(small):
    with small.target() as db:
        db.submit("theirs", 1)


def none_of_relets(small):
    do_there(small, "DROP SCHEMA relet CASCADE; CREATE SCHEMA relet; CREATE TABLE relet.other ()")


STANDS_THERE = {
    "tasks of another store": (with_tasks, "RELET-OTHER-STORE"),
    "another copy": (shut_for_another, "RELET-OTHER-STORE"),
    "no store": (none_of_relets, "RELET-NOT-A-STORE"),
}


@pytest.mark.parametrize("what", STANDS_THERE)
def test_a_plan_tells_what_the_copy_would_be_refused_for(small, what):
    with small.target() as db:
        assert db.stats().queues == []
    stand, code = STANDS_THERE[what]
    stand(small)
    planned = small.plan()
    assert [one.code for one in planned.refused] == [code]
    with pytest.raises(Refused) as refused:
        small.copy()
    assert (refused.value.code, str(refused.value)) == (code, str(planned.refused[0]))


def test_a_plan_tells_of_an_empty_store_that_is_open_and_of_each_lease(small):
    with small.target() as there_, small.source() as db:
        assert there_.stats().queues == []
        db.claim("q")
        assert [one.code for one in small.plan().refused] == ["RELET-IN-USE"] * 3
    assert [one.code for one in small.plan().refused] == ["RELET-IN-USE"]
    small.clock.advance(60)
    assert small.plan().refused == []


def test_a_plan_tells_of_a_standby_and_of_a_role_that_may_make_nothing(small):
    for setting, code in (("default_transaction_read_only=on", "RELET-READ-ONLY"), ("role=nobody", "RELET-RIGHTS")):
        do_there(small, "DROP ROLE IF EXISTS nobody; CREATE ROLE nobody")
        other = Move(small.folder, small.clock, f"{small.url}&options={quote(f'-c {setting}')}")
        assert [one.code for one in other.plan().refused] == [code]
        with pytest.raises(Error) as refused:
            other.copy()
        assert refused.value.code == code
    do_there(small, "DROP ROLE nobody")


def test_a_plan_changes_nothing_anywhere(small):
    planned = small.plan()
    assert (planned.dry_run, planned.ok, planned.rows["tasks"], planned.artifacts_copied) == (True, True, 2, 0)
    with pytest.raises(psycopg.errors.UndefinedTable):
        do_there(small, "SELECT count(*) FROM relet.tasks")
    assert small.copy().rows == planned.rows
    again = small.plan()
    assert (again.finished, again.epoch) == (True, planned.epoch)
    do_there(small, "DROP SCHEMA relet CASCADE")
    assert [one.code for one in small.plan().refused] == ["RELET-COPIED"]


def test_what_was_taken_back_before_is_back_already(small):
    small.copy()
    made = small.back()
    assert not made.already
    again = [small.plan_back(), small.back()]
    assert [(one.already, one.place, one.wall_ms) for one in again] == [(True, made.place, None)] * 2
    with small.source() as db:
        assert db.claim("q").task_id == "b"


def test_what_would_be_taken_back_is_told_and_nothing_is_changed(small):
    small.copy()
    assert not small.plan_back().already
    with small.source() as db, pytest.raises(Conflict) as moved:
        db.submit("q", 3)
    assert moved.value.code == "RELET-COPIED"
    with small.source(), pytest.raises(Conflict) as open_:
        small.plan_back()
    assert open_.value.code == "RELET-IN-USE"
    with small.target() as db:
        db.submit("q", 3)
    with pytest.raises(Conflict, match="would lose it"):
        small.plan_back()
    with small.target() as db:
        assert db.claim("q").task_id == "b", "it is open as it was"
