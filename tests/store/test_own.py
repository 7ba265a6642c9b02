"""A user's own transaction: short, judged twice, and with relet's tables out of its reach."""

# ruff: noqa: PT012 - a block that is refused as a whole is what these tests are about

import threading
from contextlib import closing

import apsw
import pytest

import relet
from relet.core import limits
from relet.core.errors import Invalid, LeaseLost, Refused, Unavailable
from relet.core.rules.cancel import Cancel
from relet.store.sqlite import own
from relet.testing import store
from tests.store.inside import ask, contents, path_of
from tests.waiting import eventually

TOO_LONG = "RELET-TRANSACTION-LONG"


@pytest.fixture
def lease(db, tmp_path):
    with closing(apsw.Connection(str(path_of(tmp_path)))) as connection:
        connection.execute("CREATE TABLE mine (x UNIQUE, events)")
        connection.execute("CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, x)")
    db.submit("q", 1, id="t")
    return db.claim("q")


def mine(folder):
    return [row[0] for row in ask(folder, "SELECT x FROM mine ORDER BY x")]


def test_what_is_written_stands_once_the_block_has_ended(lease, tmp_path):
    with lease.transaction() as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        assert mine(tmp_path) == []
    assert mine(tmp_path) == [1]
    assert lease.renew() == 60


def test_an_exception_in_the_block_undoes_it_and_passes(lease, tmp_path):
    with pytest.raises(KeyError), lease.transaction() as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        raise KeyError
    assert mine(tmp_path) == []


RELETS = {
    "insert": "INSERT INTO queues (tenant, name, paused) VALUES ('default', 'q', 1)",
    "update": "UPDATE leases SET expires_ms = expires_ms + 1",
    "update by another spelling": "UPDATE main.LEASES SET expires_ms = expires_ms + 1",
    "delete": "WITH a AS (SELECT 1) DELETE FROM events",
    "drop": "DROP TABLE evidence",
    "alter": "ALTER TABLE tasks ADD COLUMN note TEXT",
    "rename": "ALTER TABLE tasks RENAME TO jobs",
    "an index": "CREATE INDEX mine_too ON tasks (id)",
    "without an index": "DROP INDEX effects_id",
    "a trigger": "CREATE TRIGGER mine_too AFTER INSERT ON tasks BEGIN SELECT 1; END",
    "without a trigger": "DROP TRIGGER waits_decided_once",
    "a shadow": "CREATE TEMP TABLE leases AS SELECT * FROM main.leases",
    "a shadowing view": "CREATE TEMP VIEW leases AS SELECT * FROM main.leases",
    "the schema's number": "PRAGMA user_version = 7",
    "the schema itself": "PRAGMA writable_schema = 1",
    "the schema by another spelling": "PRAGMA Writable_Schema = ON",
    "the counters": "UPDATE sqlite_sequence SET seq = 9223372036854775807",
    "a shadow by another spelling": "CREATE TEMP TABLE Leases (x)",
    "a shadow by renaming": "CREATE TEMP TABLE mm (x); ALTER TABLE mm RENAME TO leases",
    "a virtual shadow": "CREATE VIRTUAL TABLE temp.leases USING fts5(x)",
    "another file": "ATTACH ':memory:' AS other",
}
ENDS = {"commit": "COMMIT", "end": "END", "rollback": "ROLLBACK", "begin": "BEGIN"}


@pytest.mark.parametrize("sql", [*RELETS.values(), *ENDS.values()], ids=[*RELETS, *ENDS])
def test_relets_tables_and_the_end_of_the_transaction_are_out_of_reach(lease, tmp_path, sql):
    before = contents(tmp_path), ask(tmp_path, "SELECT sql FROM sqlite_schema"), ask(tmp_path, "PRAGMA user_version")
    with pytest.raises(Invalid, match="names one of relet's"), lease.transaction() as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        connection.execute(sql)
    assert mine(tmp_path) == []
    after = contents(tmp_path), ask(tmp_path, "SELECT sql FROM sqlite_schema"), ask(tmp_path, "PRAGMA user_version")
    assert after == before


def test_a_lapse_that_was_seen_in_it_is_written_down_before_it_is_told(lease, tmp_path):
    clock = lease.belief.clock
    with pytest.raises(LeaseLost), lease.transaction() as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        clock.advance("61s")
    assert mine(tmp_path) == []
    assert ask(tmp_path, "SELECT ended FROM leases") == [("lapsed",)]


def test_what_is_refused_in_it_is_on_record(db, lease):
    clock = lease.belief.clock
    with pytest.raises(LeaseLost), lease.transaction() as connection:
        clock.advance("61s")
        lease.complete({"late": 1}, tx=connection)
    assert {one.verb: one.result for one in db.rejections()}["complete"] == {"late": 1}


def test_a_trigger_of_ones_own_does_not_reach_them_either(lease, tmp_path):
    before = contents(tmp_path)
    with pytest.raises(Invalid, match="names one of relet's"), lease.transaction() as connection:
        connection.execute("CREATE TEMP TRIGGER through AFTER INSERT ON mine BEGIN DELETE FROM events; END")
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
    assert contents(tmp_path) == before


def test_all_tables_may_be_read_and_ones_own_altered(lease, tmp_path):
    with lease.transaction() as connection:
        assert connection.execute("SELECT id FROM tasks").fetchall() == [("t",)]
        for sql in (
            "SAVEPOINT a", "INSERT INTO mine VALUES (1, 'a')", "UPDATE mine SET events = 'b'", "RELEASE a",
            "PRAGMA user_version", "CREATE INDEX mine_events ON mine (events)", "ALTER TABLE mine ADD COLUMN steps",
            "INSERT INTO counted (x) VALUES (1)", "DROP TABLE counted", "CREATE TABLE other (tasks)",
        ):  # fmt: skip
            connection.execute(sql)
    assert ask(tmp_path, "SELECT x, events FROM mine") == [(1, "b")]


@pytest.mark.parametrize("then", [None, "INSERT INTO mine VALUES (3, 'c')"], ids=["and no more", "and then another"])
def test_a_statement_that_rolls_all_back_lets_nothing_after_it_commit_by_itself(lease, tmp_path, then):
    with pytest.raises(Invalid, match="ON CONFLICT ABORT") as refused, lease.transaction() as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        with pytest.raises(apsw.ConstraintError):
            connection.execute("INSERT OR ROLLBACK INTO mine VALUES (1, 'b')")
        if then is not None:
            connection.execute(then)
    assert refused.value.detail["field"] == "transaction"
    assert mine(tmp_path) == []


def test_a_constraint_that_fails_by_itself_is_the_users_own_error(lease, tmp_path):
    with lease.transaction() as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        with pytest.raises(apsw.ConstraintError):
            connection.execute("INSERT INTO mine VALUES (1, 'b')")
    assert mine(tmp_path) == [1]
    with pytest.raises(apsw.ConstraintError), lease.transaction() as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'b')")


# -- the lease -----------------------------------------------------------------------------------------------------


def test_a_lease_that_was_lost_before_opens_nothing(db, lease, clock, tmp_path):
    clock.advance("60s")
    with pytest.raises(LeaseLost) as lost, lease.transaction():
        pytest.fail("the block must not begin")
    assert lost.value.reason == "expired"


def test_a_lease_that_is_lost_meanwhile_undoes_it(db, lease, clock, tmp_path):
    with pytest.raises(LeaseLost) as lost, lease.transaction() as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        clock.advance("60s")
    assert lost.value.reason == "expired"
    assert mine(tmp_path) == []
    assert lease.status == "lost"


def test_a_transaction_keeps_other_writers_waiting_and_no_reader(db, lease, connect, clock):
    other = connect(clock)
    with lease.transaction():
        assert other.task("t").live
        with pytest.raises(Unavailable):
            other.backend.call(cancel("t"), patience_ms=0)
    assert other.cancel("t").cancel_requested


def cancel(task_id):
    return Cancel(task_id=task_id, reason="")


# -- time ----------------------------------------------------------------------------------------------------------


def test_it_may_last_two_seconds_or_a_sixth_of_the_shortest_ttl_held(db, lease, monkeypatch):
    given = []

    def transaction(seconds):
        given.append(seconds)
        raise RuntimeError

    monkeypatch.setattr(db.backend, "transaction", transaction)
    db.submit_many("q", [1, 2])
    short, other = db.claim("q", ttl=6), db.claim("q", ttl=3)
    for one in (lease, short):
        with pytest.raises(RuntimeError), one.transaction():
            pass
    with other.keep_quietly(), pytest.raises(RuntimeError), short.transaction():
        pass
    assert given == [2.0, 1.0, 0.5]


def test_what_takes_too_long_is_rolled_back_and_the_lock_is_given_back_meanwhile(db, lease, tmp_path, monkeypatch):
    with pytest.raises(Refused) as late, own_for(lease, monkeypatch, 0.05) as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        db.submit("q", 2, id="other")  # waits until the lock is free
        with pytest.raises(apsw.AuthError):
            connection.execute("INSERT INTO mine VALUES (2, 'b')")
    assert (late.value.code, late.value.retryable) == (TOO_LONG, False)
    assert mine(tmp_path) == []
    assert db.task("other").state == "ready"
    assert lease.renew() == 60


def own_for(lease, monkeypatch, seconds):
    backend = lease._client.backend
    monkeypatch.setattr(backend, "transaction", lambda _: own.own_transaction(backend.store, "default", seconds))
    return lease.transaction()


def test_a_statement_that_takes_too_long_is_interrupted(db, lease, tmp_path, monkeypatch):
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n"
    with pytest.raises(Refused) as late, own_for(lease, monkeypatch, 0.05) as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        connection.execute(endless).fetchall()
    assert late.value.code == TOO_LONG
    assert mine(tmp_path) == []


def test_a_user_that_swallows_the_interrupt_commits_nothing_all_the_same(lease, tmp_path, monkeypatch):
    with pytest.raises(Refused) as late, own_for(lease, monkeypatch, 0.01) as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        assert eventually(lambda: not connection.in_transaction)
    assert late.value.code == TOO_LONG
    assert mine(tmp_path) == []


def test_a_longer_ttl_is_advised_only_where_the_ttl_made_it_shorter(db, lease, monkeypatch):
    monkeypatch.setattr(limits, "TRANSACTION_S_MAX", 0.05)
    for ttl_s, advised in ((60.0, False), (0.1, True)):
        monkeypatch.setattr(db.keeper, "shortest_ttl_s", lambda _, ttl_s=ttl_s: ttl_s)
        with pytest.raises(Refused) as late, lease.transaction() as connection:
            assert eventually(lambda: not connection.in_transaction)
        assert ("claim with a longer ttl" in str(late.value)) == advised


def test_nothing_of_it_is_left_running(lease):
    with lease.transaction() as connection:
        pass
    assert eventually(lambda: not [one for one in threading.enumerate() if isinstance(one, threading.Timer)])
    with pytest.raises(apsw.ConnectionClosedError):
        connection.execute("SELECT 1")


# -- tx= -----------------------------------------------------------------------------------------------------------


def test_a_submit_and_a_result_are_committed_with_it(db, lease, tmp_path):
    with lease.transaction() as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        assert db.submit("next", {"n": 1}, id="n", tx=connection).created
        lease.complete("done", tx=connection)
    assert mine(tmp_path) == [1]
    assert (db.task("n").state, db.result("t")) == ("ready", "done")
    with pytest.raises(LeaseLost) as lost:
        lease.save(1)
    assert lost.value.reason == "closed"


def test_a_submit_and_a_result_are_undone_with_it(db, lease, tmp_path):
    before = contents(tmp_path)
    with pytest.raises(KeyError), lease.transaction() as connection:
        db.submit("next", 1, tx=connection)
        lease.complete("done", tx=connection)
        raise KeyError
    assert contents(tmp_path) == before


def test_a_refusal_within_it_leaves_what_was_written_before(db, lease, tmp_path):
    with lease.transaction() as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
        with pytest.raises(relet.Conflict):
            db.submit("elsewhere", 1, id="t", tx=connection)
    assert mine(tmp_path) == [1]


def test_a_transaction_of_a_connection_of_ones_own_will_do_as_well(db, tmp_path):
    with closing(apsw.Connection(str(path_of(tmp_path)))) as connection:
        connection.execute("BEGIN IMMEDIATE")
        db.submit("q", 1, id="t", tx=connection)
        connection.execute("ROLLBACK")
        assert db.tasks() == []
        connection.execute("BEGIN IMMEDIATE")
        db.submit("q", 1, id="t", tx=connection)
        connection.execute("COMMIT")
    assert db.task("t").state == "ready"


@pytest.mark.parametrize("how", ["none at all", "no transaction", "another file", "in memory", "closed"])
def test_what_is_no_transaction_on_this_file_is_refused_by_name(db, tmp_path, how):
    match how:
        case "none at all":
            tx = object()
        case "another file":
            tx = apsw.Connection(str(tmp_path / "other.db"))
        case "in memory":
            tx = apsw.Connection(":memory:")
        case _:
            tx = apsw.Connection(str(path_of(tmp_path)))
    if how in {"another file", "in memory"}:
        tx.execute("BEGIN IMMEDIATE")
    if how == "closed":
        tx.close()
    with pytest.raises(Invalid, match=r"^tx: ") as refused:
        db.submit("q", 1, tx=tx)
    assert refused.value.detail["field"] == "tx"
    assert db.tasks() == []
    if how not in {"none at all", "closed"}:
        tx.close()


def test_a_private_store_in_memory_has_no_room_for_one():
    with relet.connect("sqlite://") as db:
        db.submit("q", 1)
        with pytest.raises(Invalid, match="use a file"), db.claim("q").transaction():
            pass


def test_a_store_that_is_gone_says_so(db, lease, tmp_path):
    path_of(tmp_path).unlink()
    with pytest.raises(Unavailable) as gone, lease.transaction():
        pass
    assert gone.value.code == "RELET-REPLACED"


def test_a_busy_store_is_waited_for_and_the_time_counts_from_the_lock_on(db, lease, tmp_path, monkeypatch):
    holder = apsw.Connection(str(path_of(tmp_path)))
    holder.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, lambda: (holder.execute("ROLLBACK"), holder.close())).start()
    with own_for(lease, monkeypatch, 0.25) as connection:
        connection.execute("INSERT INTO mine VALUES (1, 'a')")
    assert mine(tmp_path) == [1]


def test_the_fixture_of_the_kit_has_them_too():
    with store() as db:
        db.submit("q", 1)
        with db.claim("q").transaction() as connection:
            assert connection.in_transaction
