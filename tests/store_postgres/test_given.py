"""tx=: the user's own connection, set as the user likes it; what is wrong with it is told as it is."""

import contextlib

import psycopg
import pytest
from psycopg.pq import Format
from psycopg.types.numeric import NumericLoader
from psycopg.types.string import ByteaLoader, StrDumperVarchar

import relet
from tests.store_postgres.threads import all_at_once

pytestmark = pytest.mark.postgres
INT8 = 20
WAYS = {
    "integers as decimals": lambda to: to.adapters.register_loader("int8", NumericLoader),
    "text as bytes": lambda to: to.adapters.register_loader("text", ByteaLoader),
    "text as varchar": lambda to: to.adapters.register_dumper(str, StrDumperVarchar),
    "rows as dicts": lambda to: setattr(to, "row_factory", psycopg.rows.dict_row),
    "cursors of the client": lambda to: setattr(to, "cursor_factory", psycopg.ClientCursor),
    "no schema at all": lambda to: to.execute("SET search_path = ''"),
}


@pytest.fixture
def mine(database):
    with contextlib.closing(psycopg.connect(database)) as mine:
        yield mine


@pytest.mark.parametrize("way", WAYS)
def test_a_connection_may_send_and_read_values_in_ways_of_its_own(db, mine, way):
    WAYS[way](mine)
    mine.execute("SELECT 1")
    task = db.submit("q", {"n": 1}, exclusive="k", tx=mine)
    mine.commit()
    lease = db.claim("q")
    assert lease.task_id == task.id
    mine.execute("SELECT 1")
    lease.complete({"done": 1}, tx=mine)
    mine.commit()
    assert db.result(task.id) == {"done": 1}


def test_so_may_the_whole_program(database):
    before = psycopg.adapters.get_loader(INT8, Format.TEXT)
    psycopg.adapters.register_loader("int8", NumericLoader)
    try:
        with relet.connect(database) as db, psycopg.connect(database) as mine:
            mine.execute("SELECT 1")
            task = db.submit("q", 1, tx=mine)
            mine.commit()
            lease = db.claim("q", ttl=30)
            with lease.transaction() as own:
                assert type(own.execute("SELECT 1::bigint").fetchone()[0]).__name__ == "Decimal"
                lease.complete(2, tx=own)
            assert db.result(task.id) == 2
            assert db.backend.verify().findings == []
    finally:
        psycopg.adapters.register_loader("int8", before)


def nothing(mine):
    pass


def failed(mine):
    with contextlib.suppress(psycopg.errors.DivisionByZero):
        mine.execute("SELECT 1 / 0")


def at_work(mine):
    mine.execute("SELECT 1")
    mine.pgconn.send_query(b"SELECT pg_sleep(30)")


def closed(mine):
    mine.execute("SELECT 1")
    mine.close()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (nothing, "has no transaction open; begin one"),
        (failed, "is a transaction that an error has ended; roll it back"),
        (at_work, "is at work on a statement of another thread"),
        (closed, "is closed, or was lost"),
    ],
)
def test_what_is_wrong_with_a_transaction_is_told(db, mine, wrong, words):
    wrong(mine)
    with pytest.raises(relet.Invalid, match=f"^tx: {words}") as refused:
        db.submit("q", 1, tx=mine)
    assert refused.value.detail["field"] == "tx"


@pytest.mark.parametrize("given", ["a connection", object(), psycopg.AsyncConnection])
def test_what_is_no_connection_is_told(db, given):
    given = given.__new__(given) if given is psycopg.AsyncConnection else given
    with pytest.raises(relet.Invalid, match=r"^tx: is (no|an asynchronous) connection of psycopg's, but"):
        db.submit("q", 1, tx=given)


def test_threads_that_have_one_transaction_ask_in_it_one_after_the_other(db, mine):
    mine.execute("SELECT 1")
    all_at_once(*(lambda n=n: db.submit_many("q", [n, n], tx=mine) for n in range(8)))
    mine.commit()
    assert len(db.tasks(queue="q")) == 16


def test_a_statement_that_the_server_cut_short_is_told_as_that(database, db, mine):
    """And not as others who had a lock, which it need not be."""
    mine.execute("SET LOCAL statement_timeout = '200ms'")
    with psycopg.connect(database) as other:
        other.execute("SELECT 1")
        db.submit("q", 1, id="same", tx=other)
        with pytest.raises(relet.Unavailable, match=r"statement timeout.*statement_timeout of this role") as cut:
            db.submit("q", 1, id="same", tx=mine)
        assert cut.value.code == "RELET-CANCELLED"
        mine.rollback()
        other.rollback()
    with psycopg.connect(database, autocommit=True) as within:
        within.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 1', current_database()); END $$"
        )
        try:
            with pytest.raises(relet.Unavailable) as cut, relet.connect(database) as hasty:
                hasty.submit_many("q", list(range(5_000)))
            assert cut.value.code == "RELET-CANCELLED"
        finally:
            within.execute(
                "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET statement_timeout', current_database()); END $$"
            )
