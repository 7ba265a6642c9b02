"""A transaction of a user's own holds its locks for two seconds at most, whatever happens to its program."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.types.string import TextLoader

import relet
from relet.core import limits
from relet.store.postgres import own as transaction
from relet.store.postgres.pool import CONNECTIONS_MAX
from tests.cut_connection import Proxy
from tests.postgres import PostgresServer
from tests.processes.fixtures import start  # noqa: F401 - a fixture
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
STOPPED = Path(__file__).parent / "programs" / "stopped_in_transaction.py"
CAP_S = 2.0
LATE_S = 2.0


@pytest.fixture
def own(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 0 AS n")
        yield connection
        connection.execute("DROP TABLE mine")


def test_the_server_frees_what_a_stopped_program_has_locked(database, own, start):  # noqa: F811
    with relet.connect(database) as db:
        db.submit("work")
        program = start(STOPPED, database)
        assert program.line() == "inside"
        program.send(signal.SIGSTOP)
        began = time.monotonic()
        own.execute("SET statement_timeout = '20s'")
        own.execute("UPDATE mine SET n = 10")
        assert time.monotonic() - began < CAP_S + LATE_S
        program.send(signal.SIGCONT)
        program.tell("go on")
        assert program.line() == "RELET-TRANSACTION-LONG"
        assert program.wait() == 0
        assert own.execute("SELECT n FROM mine").fetchone() == (10,)
        # Its lease is not touched by it: nobody else was kept waiting for long enough.
        assert db.tasks(queue="work")[0].attempt == 1


def test_a_statement_that_runs_too_long_is_ended_too(database, own):
    with relet.connect(database) as db:
        db.submit("work")
        lease = db.claim("work", ttl=60)
        began = time.monotonic()

        def dawdle():
            with lease.transaction() as connection:
                connection.execute("UPDATE mine SET n = 1")
                connection.execute("SELECT pg_sleep(60)")

        with pytest.raises(relet.Refused) as told:
            dawdle()
        assert told.value.code == "RELET-TRANSACTION-LONG"
        assert time.monotonic() - began < CAP_S + LATE_S
        assert own.execute("SELECT n FROM mine").fetchone() == (0,)
        lease.complete()


def test_a_transaction_on_a_dead_line_ends_in_time():
    with PostgresServer(tcp=True) as server, Proxy(server) as proxy, relet.connect(proxy.url()) as db:
        server.execute("CREATE TABLE mine AS SELECT 0 AS n")
        db.submit("work")
        lease = db.claim("work", ttl=60)
        began = time.monotonic()

        def ask_in_vain():
            with lease.transaction() as connection:
                connection.execute("UPDATE mine SET n = 1")
                proxy.black_hole()
                connection.execute("UPDATE mine SET n = 2")

        with pytest.raises(relet.Unavailable):
            ask_in_vain()
        assert time.monotonic() - began < 2 * CAP_S + LATE_S
        server.execute("UPDATE mine SET n = 10")
        proxy.cut()
        proxy.pass_on()
        lease.complete()
        assert server.value("SELECT n FROM mine") == 10


@pytest.mark.parametrize("slow", ["the server", "the handler", "the handler, for much longer"])
def test_work_that_takes_too_long_in_it_fails_and_is_a_dead_letter_in_the_end(
    database, own, monkeypatch, caplog, slow
):
    """It is not taken for a server that is away, for which it would be tried again and again."""
    monkeypatch.setattr(limits, "TRANSACTION_S_MAX", 0.3)
    app = relet.App()

    @app.task("work", retry=relet.RetryPolicy(max_attempts=2, base=0))
    def work(run):
        with run.transaction() as connection:
            connection.execute("UPDATE mine SET n = 1")
            if slow == "the server":
                connection.execute("SELECT pg_sleep(60)")
            # Past its time, or past that in which any answer is expected.
            over = connection.answer_by + 0.1 if slow.endswith("longer") else time.monotonic() + 0.4
            eventually(lambda: time.monotonic() > over)
            connection.execute("UPDATE mine SET n = 2")

    with relet.connect(database) as db:
        work.submit(db, id="t")
        app.run_until_idle(db)
        task = db.task("t")
    assert (task.state, task.failures, task.losses) == ("failed", 2, 0)
    assert task.error.startswith("Refused: your transaction took longer than 0.3 s")
    assert "store was away" not in caplog.text
    assert own.execute("SELECT n FROM mine").fetchone() == (0,)


RELET = sql.Identifier("relet")
OUT_OF_REACH = {
    "composed": lambda one: one.execute(sql.SQL("DELETE FROM {}.events").format(RELET)),
    "a composed end": lambda one: one.execute(sql.SQL("COMMIT")),
    "bytes": lambda one: one.execute(b"DELETE FROM relet.events"),
    "many": lambda one: one.cursor().executemany(
        sql.SQL("DELETE FROM {}.events WHERE seq = %s").format(RELET), [[1]]
    ),
    "a copy": lambda one: one.cursor().copy("COPY relet.events TO STDOUT").__enter__(),
    "a stream": lambda one: list(one.cursor().stream("DELETE FROM relet.events RETURNING seq")),
    "a named cursor": lambda one: read_by_name(one, "SELECT * FROM relet.secrets"),
    "an end behind a text": lambda one: one.execute("SELECT '--'; COMMIT"),
    "an end behind a comment": lambda one: one.execute("SELECT 1; /* over */ commit"),
}


def read_by_name(connection, query):
    with connection.cursor("named") as cursor:
        cursor.execute(query)


@pytest.mark.parametrize("how", OUT_OF_REACH)
def test_no_way_of_sending_a_statement_reaches_what_is_relets(database, own, how):
    with relet.connect(database) as db:
        db.submit("work", id="t")
        lease = db.claim("work", ttl=60)
        before = len(db.history("t"))

        def reach():
            with lease.transaction() as connection:
                connection.execute("UPDATE mine SET n = 1")
                OUT_OF_REACH[how](connection)

        with pytest.raises(relet.Invalid, match=r"^transaction: "):
            reach()
        assert own.execute("SELECT n FROM mine").fetchone() == (0,)
        assert len(db.history("t")) == before
        lease.complete()


def test_what_only_looks_like_an_end_is_allowed(database, own):
    with relet.connect(database) as db:
        db.submit("work")
        with db.claim("work", ttl=60).transaction() as connection:
            connection.execute("UPDATE mine SET n = 1 WHERE 'a; commit' <> '' -- ; commit")
            connection.execute(sql.SQL("UPDATE {} SET n = n + 1").format(sql.Identifier("mine")))
            with connection.cursor("named") as named:
                assert named.execute("SELECT n FROM mine").fetchall() == [(2,)]
        assert own.execute("SELECT n FROM mine").fetchone() == (2,)


@pytest.mark.parametrize("then", ["goes on", "begins anew", "raises"])
def test_a_transaction_that_was_ended_within_its_block_is_told_of(database, own, then):
    """Behind the driver's back, where no statement can be looked at."""
    with relet.connect(database) as db:
        db.submit("work")
        lease = db.claim("work", ttl=60)

        def end():
            with lease.transaction() as connection:
                connection.execute("UPDATE mine SET n = 1")
                connection.pgconn.exec_(b"COMMIT")
                if then == "begins anew":
                    connection.pgconn.exec_(b"BEGIN")
                if then == "raises":
                    raise ValueError("undo it")

        with pytest.raises(relet.OutcomeUnknown) as told:
            end()
        assert told.value.code == "RELET-TRANSACTION-ENDED"
        lease.complete()


def test_a_commit_whose_answer_was_lost_is_unknown():
    with PostgresServer(tcp=True) as server, Proxy(server) as proxy, relet.connect(proxy.url()) as db:
        server.execute("CREATE TABLE mine AS SELECT 0 AS n")
        db.submit("work")
        lease = db.claim("work", ttl=60)

        def write():
            with lease.transaction() as connection:
                connection.execute("UPDATE mine SET n = 1")
                proxy.cut_after(b"COMMIT")

        with pytest.raises(relet.OutcomeUnknown):
            write()
        assert server.value("SELECT n FROM mine") == 1
        lease.complete()


def test_a_transaction_ends_in_time_while_all_connections_wait_for_it(database, own):
    """Whoever asks one thing after another is stopped by nobody but us, and by a connection that nobody else has."""
    with relet.connect(database) as db, ThreadPoolExecutor(CONNECTIONS_MAX) as threads:
        db.submit("work", id="t")
        lease = db.claim("work", ttl=60)
        began = time.monotonic()

        def go_on_for_ever():
            with lease.transaction() as connection:
                for _ in range(CONNECTIONS_MAX):
                    threads.submit(lambda: db.cancel("t"))
                while time.monotonic() < began + 20:
                    connection.execute("SELECT pg_sleep(0.1)")

        with pytest.raises(relet.Refused) as told:
            go_on_for_ever()
        assert told.value.code == "RELET-TRANSACTION-LONG"
        assert time.monotonic() - began < CAP_S + LATE_S


def test_a_name_without_a_schema_means_none_of_relets_tables(database, own):
    """Though the role is called like the schema, which therefore comes first where it looks for a table."""
    own.execute("CREATE ROLE relet LOGIN SUPERUSER")
    try:
        with relet.connect(database.replace("postgres@", "relet@")) as db:
            db.submit("work", id="t")
            lease = db.claim("work", ttl=60)
            with lease.transaction() as connection:
                assert connection.execute("SELECT current_schemas(false)").fetchone() == (["public"],)
                connection.execute("UPDATE mine SET n = 1")
                connection.execute("CREATE TABLE tasks AS SELECT 1 AS n")

            def empty():
                with lease.transaction() as connection:
                    connection.execute("DELETE FROM events")

            with pytest.raises(psycopg.errors.UndefinedTable):
                empty()
            lease.complete()
            assert db.backend.verify().findings == []
        assert own.execute("SELECT n FROM public.tasks").fetchone() == (1,)
    finally:
        own.execute("DROP TABLE IF EXISTS public.tasks; REASSIGN OWNED BY relet TO postgres; DROP ROLE relet")


def test_rows_may_come_in_any_form_within_it(database, own):
    with relet.connect(database) as db:
        db.submit("work", id="t")
        lease = db.claim("work", ttl=60)
        with lease.transaction() as connection:
            connection.row_factory = psycopg.rows.dict_row
            connection.adapters.register_loader("int8", TextLoader)
            assert connection.execute("SELECT 7::bigint AS n").fetchone() == {"n": "7"}
            lease.complete(connection.execute("SELECT 7 AS n").fetchone(), tx=connection)
        assert db.result("t") == {"n": 7}


@pytest.mark.parametrize("how", ["pg_terminate_backend", "pg_cancel_backend"])
def test_a_transaction_that_the_server_does_not_begin_is_told_of(database, monkeypatch, how):
    with relet.connect(database) as db:
        db.submit("work")
        lease = db.claim("work", ttl=60)
        begin = f"SELECT {how}(pg_backend_pid()), pg_sleep(9), $1::text, $2::text"
        with monkeypatch.context() as patched:
            patched.setattr(transaction, "CAP", begin)
            with pytest.raises(relet.Unavailable, match="nothing was written"):
                lease.transaction().__enter__()
        with lease.transaction() as connection:
            lease.complete(tx=connection)
