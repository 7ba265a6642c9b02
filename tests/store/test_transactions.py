"""submit within the caller's own transaction: it commits and undoes with everything else of the caller's."""

import apsw
import pytest

import relet
from relet.core.errors import Conflict, Invalid, Unavailable
from relet.testing import Clock
from tests.store.inside import ask, path_of


@pytest.fixture
def connection(db, tmp_path):
    """The caller's own, with a table of the caller's own."""
    with_notes = apsw.Connection(str(path_of(tmp_path)))
    with_notes.execute("CREATE TABLE notes (x)")
    yield with_notes
    with_notes.close()


def notes(folder):
    return [row[0] for row in ask(folder, "SELECT x FROM notes")]


def ids(db):
    return [task.id for task in db.tasks()]


def test_a_commit_publishes_the_task_with_the_rest(db, connection, tmp_path):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO notes VALUES ('a')")
    task = db.submit("q", 1, id="t", tx=connection)
    assert task.created
    assert (ids(db), notes(tmp_path)) == ([], []), "nobody else sees it before"
    connection.execute("COMMIT")
    assert (ids(db), notes(tmp_path)) == (["t"], ["a"])
    assert db.claim("q").task_id == "t"


def test_a_rollback_undoes_the_task_with_the_rest(db, connection, tmp_path):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO notes VALUES ('a')")
    db.submit_many("q", [1, 2, 3], tx=connection)
    connection.execute("ROLLBACK")
    assert (ids(db), notes(tmp_path), db.claim("q")) == ([], [], None)
    assert db.stats().queues == []


def test_a_refusal_leaves_what_the_caller_wrote_and_nothing_of_its_own(db, connection, tmp_path):
    db.submit("q", 1, id="t")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO notes VALUES ('a')")
    with pytest.raises(Conflict):
        db.submit_many("q", [7, 8], ids=["new", "t"], tx=connection)
    assert connection.in_transaction
    connection.execute("COMMIT")
    assert (ids(db), notes(tmp_path)) == (["t"], ["a"])


def test_what_fails_half_way_is_undone_alone(db, connection, tmp_path):
    connection.execute("CREATE TEMP TRIGGER no BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no'); END")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO notes VALUES ('a')")
    with pytest.raises(Unavailable, match="no"):
        db.submit("q", 1, tx=connection)
    connection.execute("COMMIT")
    assert (ids(db), notes(tmp_path)) == ([], ["a"])


def test_a_lock_that_the_callers_transaction_does_not_get_is_told_in_our_words(db, connection, tmp_path):
    other = apsw.Connection(str(path_of(tmp_path)))
    other.execute("BEGIN IMMEDIATE")
    connection.execute("BEGIN")
    with pytest.raises(Unavailable) as busy:
        db.submit("q", 1, tx=connection)
    assert busy.value.code == "RELET-BUSY"
    other.close()


def on_another_file(folder):
    connection = apsw.Connection(str(folder / "other.db"))
    connection.execute("BEGIN IMMEDIATE")
    return connection


def in_memory(folder):
    connection = apsw.Connection(":memory:")
    connection.execute("BEGIN IMMEDIATE")
    return connection


def without_a_transaction(folder):
    return apsw.Connection(str(path_of(folder)))


def closed(folder):
    connection = apsw.Connection(str(path_of(folder)))
    connection.close()
    return connection


def a_driver_of_somebody_else(folder):
    import sqlite3

    return sqlite3.connect(":memory:")


WRONG = [
    (on_another_file, "is a transaction on another file than .*relet.db"),
    (in_memory, "is a transaction on another file than .*relet.db"),
    (without_a_transaction, "is not an apsw connection with an open transaction; begin one with BEGIN IMMEDIATE"),
    (closed, "is not an apsw connection with an open transaction"),
    (a_driver_of_somebody_else, "is not an apsw connection with an open transaction"),
]


@pytest.mark.parametrize(("make", "problem"), WRONG)
def test_a_transaction_that_is_not_ours_to_join_is_refused(db, tmp_path, make, problem):
    connection = make(tmp_path)
    with pytest.raises(Invalid, match=f"^tx: {problem}") as refused:
        db.submit("q", 1, tx=connection)
    assert refused.value.detail["field"] == "tx"
    assert ids(db) == []
    connection.close()


def test_a_store_in_memory_has_no_transaction_to_join(tmp_path):
    with relet.connect("sqlite://") as db:
        with pytest.raises(Invalid, match="is a transaction on another file than sqlite:// \\(in memory\\)"):
            db.submit("q", 1, tx=in_memory(tmp_path))
        assert ids(db) == []


def test_a_store_in_memory_does_everything_that_one_in_a_file_does():
    with relet.connect("sqlite://") as db, relet.connect("sqlite://") as other:
        db.submit_many("q", [1, 2])
        lease = db.claim("q")
        assert lease.renew() > 59
        lease.save({"page": 1})
        following = lease.complete(1, claim_next=True)
        assert following.token > lease.token
        following.release()
        assert (db.place, db.stats().queues[0].done) == ("sqlite:// (in memory)", 1)
        assert other.tasks() == [], "each is private"


def test_a_lapse_seen_in_memory_is_written_as_well(monkeypatch):
    from relet.client.blocking import Client
    from relet.store.sqlite.backend import SqliteBackend

    clock = Clock()
    with Client(SqliteBackend("sqlite://", "default", clock=clock), clock=clock) as db:
        db.submit("q", 1, id="t")
        lease = db.claim("q")
        clock.advance(60)
        with pytest.raises(relet.LeaseLost):
            lease.renew()
        assert [event.kind for event in db.history("t")][-1] == "lapsed"
        assert db.stats().rejections == {"expired": 1}
