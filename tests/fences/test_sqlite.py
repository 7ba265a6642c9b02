"""A fence in a SQLite database: one transaction, left alone by nobody, and triggers for whoever comes without it."""

import contextlib
import sqlite3

import apsw
import pytest

import relet
from relet.fences import SqliteFence
from relet.fences.sqlite import RELET_STORE
from relet.store.sqlite.connect import APPLICATION_ID


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "mine.db"
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)")
        made.execute("CREATE TABLE lines (order_id INTEGER REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)")
    return path


@pytest.fixture(params=["stdlib", "apsw"])
def kind(request):
    return request.param


@pytest.fixture
def connect(kind, path):
    """Opens further connections of the kind."""
    with contextlib.ExitStack() as opened:

        def connect(**options):
            if kind == "stdlib":
                return opened.enter_context(contextlib.closing(sqlite3.connect(path, **{"timeout": 0} | options)))
            connection = apsw.Connection(str(path))
            opened.callback(connection.close)
            return connection

        yield connect


@pytest.fixture
def mine(connect):
    return connect(isolation_level=None)


@pytest.fixture
def fence(mine):
    return SqliteFence(mine, patience=0)


def orders(connection):
    return connection.execute("SELECT id, state FROM orders ORDER BY id").fetchall()


def test_the_block_is_one_transaction_of_your_own_connection(fence, mine, connect):
    other = connect()
    with fence.write("orders", 1) as target:
        assert target is mine
        target.execute("INSERT INTO orders VALUES (1, 'new')")
        assert orders(other) == []
    assert orders(other) == [(1, "new")]


@pytest.mark.parametrize("isolation_level", ["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE", None])
def test_every_isolation_level_of_sqlite3_will_do(path, isolation_level):
    with contextlib.closing(sqlite3.connect(path, isolation_level=isolation_level)) as connection:
        fence = SqliteFence(connection)
        with fence.write("orders", 2) as target:
            target.execute("INSERT INTO orders VALUES (1, 'new')")
        with pytest.raises(relet.StaleToken), fence.write("orders", 1):
            pytest.fail("the block began")
        assert not connection.in_transaction
        assert orders(connection) == [(1, "new")]


def test_rows_of_any_shape_will_do(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.row_factory = lambda cursor, row: {"one": row}
        fence = SqliteFence(connection)
        fence.raise_to("orders", 2)
        with pytest.raises(relet.StaleToken) as refused:
            fence.raise_to("orders", 1)
        assert refused.value.current_token == 2
        fence.protect("orders")


def test_a_connection_inside_a_transaction_is_refused_and_left_as_it_is(fence, mine):
    mine.execute("BEGIN")
    mine.execute("INSERT INTO orders VALUES (1, 'mine')")
    with pytest.raises(relet.Invalid, match="conn: is inside a transaction already"):
        fence.raise_to("orders", 1)
    assert mine.in_transaction
    mine.execute("COMMIT")
    assert orders(mine) == [(1, "mine")]
    with (
        fence.write("orders", 1),
        pytest.raises(relet.Invalid, match="inside a transaction already"),
        fence.write("other", 1),
    ):
        pytest.fail("the inner block began")


@pytest.mark.parametrize("interrupt", [ValueError, KeyboardInterrupt])
def test_whatever_ends_the_block_early_undoes_it(fence, mine, interrupt):
    with pytest.raises(interrupt), fence.write("orders", 1) as target:
        target.execute("INSERT INTO orders VALUES (1, 'half')")
        raise interrupt
    assert orders(mine) == []
    assert not mine.in_transaction


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "COMMIT; BEGIN; INSERT INTO orders VALUES (2, 'unguarded')"])
def test_a_block_that_ends_the_transaction_itself_is_told(fence, mine, end):
    with (
        pytest.raises(relet.Invalid, match="the block ended the transaction itself"),
        fence.write("orders", 1) as target,
    ):
        target.execute("INSERT INTO orders VALUES (1, 'new')")
        for statement in end.split(";"):
            target.execute(statement)
    assert not mine.in_transaction
    assert orders(mine) == ([] if end == "ROLLBACK" else [(1, "new")])


def test_executescript_inside_a_block_is_told(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        fence = SqliteFence(connection)
        with pytest.raises(relet.Invalid, match="executescript"), fence.write("orders", 1) as target:
            target.executescript("INSERT INTO orders VALUES (1, 'new')")


def test_what_the_commit_finds_wrong_with_your_rows_is_your_error_and_undone(fence, mine):
    mine.execute("PRAGMA foreign_keys = on")
    with pytest.raises((sqlite3.IntegrityError, apsw.ConstraintError)), fence.write("orders", 1) as target:
        target.execute("INSERT INTO lines VALUES (7)")
    assert mine.execute("SELECT * FROM lines").fetchall() == []
    assert not mine.in_transaction


def test_a_writer_in_the_way_is_unavailable_and_nothing_is_written(fence, mine, connect):
    other = connect(isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(relet.Unavailable, match="another writer of this database") as refused:
        fence.raise_to("orders", 1)
    assert (refused.value.code, refused.value.retryable) == ("RELET-FENCE-BUSY", True)
    other.execute("ROLLBACK")
    fence.raise_to("orders", 1)


def test_a_reader_in_the_way_of_the_commit_is_unavailable_and_nothing_is_written(fence, mine, connect):
    fence.raise_to("orders", 1)
    other = connect(isolation_level=None)
    with (
        pytest.raises(relet.Unavailable, match="readers of this database"),
        fence.write("orders", 1) as target,
    ):
        other.execute("BEGIN")
        assert orders(other) == []
        target.execute("INSERT INTO orders VALUES (1, 'new')")
    other.execute("ROLLBACK")
    assert orders(other) == []


def test_what_a_fence_acknowledged_is_on_disk_whatever_the_connection_chose(fence, mine):
    mine.execute("PRAGMA synchronous = off").fetchall()
    with fence.write("orders", 1) as target:
        assert target.execute("PRAGMA synchronous").fetchall() == [(2,)]
    assert mine.execute("PRAGMA synchronous").fetchall() == [(0,)]
    mine.execute("PRAGMA synchronous = extra").fetchall()
    with fence.write("orders", 1) as target:
        assert target.execute("PRAGMA synchronous").fetchall() == [(3,)]


def test_a_database_that_cannot_be_written_is_unavailable(kind, path):
    with contextlib.ExitStack() as opened:
        if kind == "stdlib":
            connection = opened.enter_context(
                contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None))
            )
        else:
            connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            opened.callback(connection.close)
        with pytest.raises(relet.Unavailable, match="readonly") as refused:
            SqliteFence(connection).raise_to("orders", 1)
        assert refused.value.code == "RELET-FENCE-TARGET"
        assert not connection.in_transaction


def test_a_failing_commit_is_unknown():
    """A database in memory whose commit is refused by a hook of the engine."""
    connection = apsw.Connection(":memory:")
    fence = SqliteFence(connection)
    fence.raise_to("orders", 1)

    def fail():
        raise apsw.IOError("the disk is gone")

    connection.set_commit_hook(fail)
    with pytest.raises(relet.OutcomeUnknown, match="the disk is gone") as refused:
        fence.raise_to("orders", 2)
    assert refused.value.code == "RELET-COMMIT"
    connection.close()


def test_a_relet_store_opened_by_sqlite3_is_refused(tmp_path):
    assert RELET_STORE == APPLICATION_ID
    with relet.connect(f"sqlite:///{tmp_path}/work.db") as db:
        db.submit("work", 1)
    with contextlib.closing(sqlite3.connect(tmp_path / "work.db")) as connection:
        with pytest.raises(relet.Invalid, match="is open on a relet store by Python's own sqlite3"):
            SqliteFence(connection).raise_to("orders", 1)
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'relet_fence'").fetchone() == (0,)


def test_what_is_no_open_connection_is_refused(connect):
    with pytest.raises(relet.Invalid, match=r"conn: .* is no sqlite3.Connection and no apsw.Connection"):
        SqliteFence("mine.db")
    closed = connect()
    closed.close()
    with pytest.raises(relet.Invalid, match="conn: cannot be used"):
        SqliteFence(closed)


class TestProtected:
    @pytest.fixture(autouse=True)
    def protected(self, fence, mine):
        mine.execute("INSERT INTO orders VALUES (1, 'new')")
        fence.protect("ORDERS")
        fence.protect("orders")

    @pytest.mark.parametrize(
        "statement", ["INSERT INTO orders VALUES (2, 'x')", "UPDATE orders SET state = 'x'", "DELETE FROM orders"]
    )
    def test_a_guarded_table_is_written_inside_the_block_alone(self, fence, mine, connect, statement):
        for writer in (mine, connect(isolation_level=None)):
            with pytest.raises(
                (sqlite3.Error, apsw.Error), match=r"this table is guarded|no such function: relet_token"
            ):
                writer.execute(statement)
            assert orders(mine) == [(1, "new")]
        with fence.write("orders", 1) as target:
            target.execute(statement)
        assert orders(mine) != [(1, "new")]
        with pytest.raises((sqlite3.Error, apsw.Error), match="this table is guarded"):
            mine.execute("INSERT INTO orders VALUES (3, 'x')")

    def test_after_a_refusal_and_a_failure_it_is_still_guarded(self, fence, mine):
        with pytest.raises(ValueError, match="midway"), fence.write("orders", 2):
            raise ValueError("midway")
        with pytest.raises((sqlite3.Error, apsw.Error), match="this table is guarded"):
            mine.execute("DELETE FROM orders")

    def test_two_fences_of_one_connection_know_of_each_other(self, fence, mine):
        other = SqliteFence(mine)
        pending = mine.execute("SELECT 1 UNION SELECT 2")
        for one in (fence, other):
            with one.write("orders", 1) as target:
                target.execute("UPDATE orders SET state = state || '!'")
        pending.close()
        assert orders(mine) == [(1, "new!!")]


@pytest.mark.parametrize("table", ["gone", "relet_fence", "RELET_FENCE", "sqlite_master", 'a"b', "", 7])
def test_what_is_no_table_cannot_be_guarded(fence, table):
    fence.raise_to("orders", 1)
    with pytest.raises(relet.Invalid, match="table: "):
        fence.protect(table)


def test_a_table_of_any_name_can_be_guarded(fence, mine):
    name = 'or"ders; DROP TABLE orders --'
    quoted = '"' + name.replace('"', '""') + '"'
    mine.execute(f"CREATE TABLE {quoted} (x)")
    fence.protect(name)
    with pytest.raises((sqlite3.Error, apsw.Error), match="this table is guarded"):
        mine.execute(f"INSERT INTO {quoted} VALUES (1)")
    assert orders(mine) == []


def test_tokens_of_one_store_are_compared_across_its_tasks_and_takeovers(fence, relet_db):
    relet_db.submit("work", 1)
    first = relet_db.claim("work", ttl="30s")
    fence.raise_to("page", first.token)
    relet_db.clock.advance("30s")
    second = relet_db.claim("work")
    fence.raise_to("page", second.token)
    with pytest.raises(relet.LeaseLost) as refused:
        fence.raise_to("page", first.token)
    assert (refused.value.token, refused.value.current_token) == (first.token, second.token)
    relet_db.submit("work", 2)
    another = relet_db.claim("work")
    fence.raise_to("page", another.token)
    with pytest.raises(relet.StaleToken):
        fence.raise_to("page", second.token)
