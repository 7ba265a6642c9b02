"""A fence in a PostgreSQL database: one transaction, whose locks end by themselves."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

import relet
from relet.fences import PostgresFence
from tests.waiting import eventually


@pytest.fixture
def connect(database):
    """Opens connections to a database of its own, with an empty table `orders`."""
    opened = [psycopg.connect(database, autocommit=True)]
    opened[0].execute(
        "CREATE TABLE orders (id int PRIMARY KEY, state text, UNIQUE (state) DEFERRABLE INITIALLY DEFERRED)"
    )

    def connect(**options):
        opened.append(psycopg.connect(database, **options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def mine(connect):
    return connect(autocommit=True)


@pytest.fixture
def fence(mine):
    return PostgresFence(mine, patience="50ms")


def orders(connection):
    with connection.transaction():
        return connection.execute("SELECT id, state FROM orders ORDER BY id").fetchall()


@pytest.mark.parametrize("autocommit", [True, False])
def test_the_block_is_one_transaction_of_your_own_connection(connect, mine, autocommit):
    writer = connect(autocommit=autocommit)
    with PostgresFence(writer).write("orders", 1) as target:
        assert target is writer
        target.execute("INSERT INTO orders VALUES (1, 'new')")
        assert orders(mine) == []
    assert orders(mine) == [(1, "new")]
    assert writer.info.transaction_status is TransactionStatus.IDLE


@pytest.mark.parametrize("level", list(IsolationLevel), ids=lambda level: level.name)
def test_at_every_isolation_level_a_writer_of_a_moment_ago_is_seen(connect, level):
    old, new = connect(), connect()
    old.isolation_level = level
    PostgresFence(old).raise_to("orders", 1)
    PostgresFence(new).raise_to("orders", 2)
    with pytest.raises(relet.StaleToken) as refused, PostgresFence(old).write("orders", 1):
        pytest.fail("the block began")
    assert refused.value.current_token == 2
    assert old.info.transaction_status is TransactionStatus.IDLE


def test_a_raise_that_comes_between_snapshot_and_upsert_is_not_missed(connect):
    """REPEATABLE READ: the server itself says that the row is not what the snapshot has."""
    old, new = connect(), connect(autocommit=True)
    old.isolation_level = IsolationLevel.REPEATABLE_READ
    PostgresFence(new).raise_to("orders", 1)
    fence = PostgresFence(old)
    admit = fence._admit

    def late(resource, token):
        orders(old)
        PostgresFence(new).raise_to("orders", 2)
        admit(resource, token)

    fence._admit = late
    with pytest.raises(relet.Unavailable, match="could not serialize access"), fence.write("orders", 1):
        pytest.fail("the block began")
    with pytest.raises(relet.StaleToken):
        PostgresFence(old).raise_to("orders", 1)


def test_a_connection_inside_a_transaction_is_refused_and_left_as_it_is(connect, mine):
    writer = connect()
    writer.execute("INSERT INTO orders VALUES (1, 'mine')")
    with pytest.raises(relet.Invalid, match="conn: is inside a transaction already"):
        PostgresFence(writer).raise_to("orders", 1)
    writer.commit()
    assert orders(mine) == [(1, "mine")]


@pytest.mark.parametrize("interrupt", [ValueError, KeyboardInterrupt])
def test_whatever_ends_the_block_early_undoes_it(fence, mine, interrupt):
    with pytest.raises(interrupt), fence.write("orders", 1) as target:
        target.execute("INSERT INTO orders VALUES (1, 'half')")
        raise interrupt
    assert orders(mine) == []


def test_rows_of_any_shape_will_do(connect):
    writer = connect(row_factory=dict_row)
    fence = PostgresFence(writer)
    fence.raise_to("orders", 2)
    with pytest.raises(relet.StaleToken) as refused:
        fence.raise_to("orders", 1)
    assert refused.value.current_token == 2


def test_your_own_error_in_the_block_stays_yours(fence, mine, connect):
    other = connect()
    other.execute("LOCK TABLE orders")
    with pytest.raises(psycopg.errors.LockNotAvailable), fence.write("orders", 1) as target:
        target.execute("INSERT INTO orders VALUES (1, 'new')")
    other.rollback()
    with pytest.raises(psycopg.errors.UniqueViolation), fence.write("orders", 1) as target:
        target.execute("INSERT INTO orders VALUES (1, 'same'), (2, 'same')")
    assert orders(mine) == []


def test_an_open_block_of_another_is_unavailable_in_time(fence, connect):
    holder = PostgresFence(connect(autocommit=True))
    with holder.write("orders", 1), pytest.raises(relet.Unavailable, match="an earlier writer's open") as refused:
        fence.raise_to("orders", 2)
    assert (refused.value.code, refused.value.retryable) == ("RELET-FENCE-BUSY", True)
    fence.raise_to("orders", 2)


def test_a_block_that_stands_still_is_ended_by_the_server_and_its_successor_goes_on(connect, mine):
    old = PostgresFence(connect(autocommit=True), idle="100ms")
    new = PostgresFence(mine)
    with (
        pytest.raises(relet.Unavailable, match=r"paused for more than 0.1 s") as refused,
        old.write("orders", 1) as target,
    ):
        target.execute("INSERT INTO orders VALUES (1, 'late')")
        new.raise_to("orders", 2)  # waits for the server to do so
    assert refused.value.code == "RELET-FENCE-IDLE"
    assert orders(mine) == []
    new.raise_to("orders", 2)  # a slow machine may have been ended before its INSERT
    with pytest.raises(relet.Unavailable, match="the connection is closed"):
        old.raise_to("orders", 1)
    again = PostgresFence(connect(autocommit=True))
    with pytest.raises(relet.StaleToken):
        again.raise_to("orders", 1)


def test_a_statement_on_a_session_that_was_ended_is_unavailable_too(connect, mine):
    old = PostgresFence(connect(autocommit=True), idle="50ms")
    with pytest.raises(relet.Unavailable) as refused, old.write("orders", 1) as target:
        eventually(lambda: gone(mine, target))
        target.execute("INSERT INTO orders VALUES (1, 'late')")
    assert refused.value.code in ("RELET-FENCE-IDLE", "RELET-FENCE-TARGET")
    assert orders(mine) == []


def test_a_server_that_ends_the_session_before_the_commit_leaves_the_outcome_unknown(connect, mine):
    fence = PostgresFence(connect(autocommit=True))
    with pytest.raises(relet.OutcomeUnknown) as refused, fence.write("orders", 1) as target:
        target.execute("INSERT INTO orders VALUES (1, 'new')")
        mine.execute("SELECT pg_terminate_backend(%s)", (target.info.backend_pid,))
        eventually(lambda: gone(mine, target))
    assert refused.value.code == "RELET-COMMIT"


def gone(connection, other):
    pid = other.info.backend_pid
    return connection.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone() is None


def test_of_many_that_find_no_table_all_go_on(connect):
    fences = [PostgresFence(connect(autocommit=True)) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        raised = [pool.submit(fence.raise_to, f"orders-{n}", 1) for n, fence in enumerate(fences)]
    assert [one.result() for one in raised] == [None] * 6


def test_the_table_can_be_in_a_schema_of_its_own_and_made_by_somebody_else(connect, mine):
    mine.execute('CREATE SCHEMA "Fence s"')
    PostgresFence(mine, schema="Fence s").install()
    PostgresFence(mine, schema="Fence s").install()
    mine.execute("DROP ROLE IF EXISTS poor")
    mine.execute("CREATE ROLE poor LOGIN")
    mine.execute(
        'GRANT USAGE ON SCHEMA "Fence s" TO poor; GRANT SELECT, INSERT, UPDATE ON "Fence s".relet_fence TO poor'
    )
    poor = connect(user="poor")
    PostgresFence(poor, schema="Fence s").raise_to("orders", 1)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        PostgresFence(poor).raise_to("orders", 1)
    mine.execute("DROP OWNED BY poor; DROP ROLE poor")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"patience": 0}, "patience"),
        ({"idle": 0}, "idle"),
        ({"schema": ""}, "schema"),
        ({"patience": "soon"}, "patience"),
    ],
)
def test_odd_options_are_refused(mine, options, field):
    with pytest.raises(relet.Invalid, match=f"{field}: "):
        PostgresFence(mine, **options)


def test_an_asynchronous_connection_is_refused(database):
    async def open_one():
        async with await psycopg.AsyncConnection.connect(database) as connection:
            with pytest.raises(relet.Invalid, match=r"is no psycopg.Connection"):
                PostgresFence(connection)

    asyncio.run(open_one())


class TestProtected:
    @pytest.fixture(autouse=True)
    def protected(self, fence, mine):
        mine.execute("INSERT INTO orders VALUES (1, 'new')")
        fence.protect("orders")
        fence.protect("orders")

    @pytest.mark.parametrize(
        "statement",
        [
            "INSERT INTO orders VALUES (2, 'x')",
            "UPDATE orders SET state = 'x'",
            "DELETE FROM orders",
            "TRUNCATE orders",
        ],
    )
    def test_a_guarded_table_is_written_inside_the_block_alone(self, fence, mine, connect, statement):
        for writer in (mine, connect(autocommit=True)):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="this table is guarded"):
                writer.execute(statement)
            assert orders(mine) == [(1, "new")]
        with fence.write("orders", 1) as target:
            target.execute(statement)
        assert orders(mine) != [(1, "new")]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            mine.execute(statement)

    def test_a_writer_that_names_a_token_itself_must_name_a_good_one(self, fence, mine, connect):
        fence.raise_to("orders", 5)
        other = connect()
        for resource, token, good in [("orders", 4, False), ("orders", 5, True), ("unknown", 9, False)]:
            other.execute(f"SET LOCAL relet.resource = '{resource}'; SET LOCAL relet.token = '{token}'")
            if good:
                other.execute("UPDATE orders SET state = 'x'")
            else:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    other.execute("UPDATE orders SET state = 'y'")
            (other.commit if good else other.rollback)()
        assert orders(mine) == [(1, "x")]

    def test_the_fence_cannot_be_raised_between_its_look_and_its_commit(self, fence, connect):
        fence.raise_to("orders", 5)
        other = connect()
        other.execute("SET LOCAL relet.resource = 'orders'; SET LOCAL relet.token = '5'")
        other.execute("UPDATE orders SET state = 'x'")
        with pytest.raises(relet.Unavailable):
            fence.raise_to("orders", 6)
        other.commit()
        fence.raise_to("orders", 6)


@pytest.mark.parametrize("table", ["gone", "relet_fence", 'orders"; DROP TABLE orders; --', "", 7])
def test_what_is_no_table_cannot_be_guarded(fence, table):
    with pytest.raises(relet.Invalid, match="table: "):
        fence.protect(table)


@pytest.mark.slow
def test_a_raise_outlives_a_restart_of_the_server():
    from tests.postgres import PostgresServer

    with PostgresServer(fsync="on") as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            PostgresFence(connection).raise_to("orders", 2)
        server.stop()
        server.start()
        with psycopg.connect(server.url()) as connection, pytest.raises(relet.StaleToken):
            PostgresFence(connection).raise_to("orders", 1)
