"""A store is migrated while its clients work, and shuts them out when it is told to; killed anywhere, it is whole."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import relet
from relet.core.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable, UpgradeRequired
from relet.store.postgres import schema as schema_of_now
from relet.store.postgres.connect import make_tables, probe
from relet.store.postgres.texts import COLUMNS, SQL, Dialect
from relet.store.postgres.upgrade import THIS, migrate
from relet.store.postgres.upgrade_steps import fresh, steps
from tests.pgbouncer import PgBouncer
from tests.postgres import PostgresServer
from tests.store_postgres.next_release import PRE, next_release
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
KILLED = Path(__file__).parent / "programs" / "migrate_killed.py"
FORM = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns "
    "WHERE table_schema = %s ORDER BY 1, 2"
)
INDEXES = (
    "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s ORDER BY 1"
)
STATE = "SELECT version, min_reader, min_writer FROM relet.meta"


@pytest.fixture
def release(tmp_path):
    return next_release(tmp_path / "migrations")


@pytest.fixture
def url(database):
    relet.connect(database).close()
    return database


def asked(url, query, *values):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query, values).fetchall()


def form(url, schema="relet"):
    return [
        [tuple(str(part).replace(f"{schema}.", "relet.") for part in row) for row in asked(url, query, schema)]
        for query in (FORM, INDEXES)
    ]


class Load:
    """Clients of now that submit, claim and complete for as long as the block lasts."""

    def __init__(self, url, n=3):
        self._url, self.done, self.wrong = url, 0, []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=[f"q{i}"]) for i in range(n)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.goes_on()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def goes_on(self, n=60):
        until = self.done + n
        eventually(lambda: self.wrong or self.done >= until)
        assert self.wrong == []

    def _work(self, queue):
        try:
            with relet.connect(self._url) as db:
                while not self._over.is_set():
                    self._one(db, queue)
        except Exception as wrong:
            self.wrong.append(wrong)

    def _one(self, db, queue):
        task = db.submit(queue, {"n": self.done}).id
        lease = db.claim(queue, ttl="20s")
        lease.renew()
        lease.save({"half": True})
        lease.complete("whole")
        assert db.result(task) == "whole"
        self.done += 1


def test_clients_of_the_schema_before_work_on_while_it_is_migrated(url, release):
    with Load(url) as load:
        done = migrate(url, to=release)
        assert (done.was, done.schema, done.left) == (1, 2, ["0002_colours.sql"])
        load.goes_on(300)
        assert migrate(url, to=release).steps == []
        load.goes_on(300)
    assert asked(url, STATE) == [(2, 1, 1)]
    with relet.connect(url) as db:
        assert db.verify().ok
        assert db.stats().total.done == load.done


def test_they_are_refused_once_older_clients_are_shut_out_and_write_nothing(url, release):
    load = Load(url)
    with load:
        migrate(url, to=release)
        done = migrate(url, to=release, post=True)
        assert (done.steps, done.left) == (["0002_colours.sql"], [])
        eventually(lambda: len(load.wrong) == 3)
    assert {(type(one), "Nothing was written" in str(one)) for one in load.wrong} == {(UpgradeRequired, True)}
    assert asked(url, STATE) == [(2, 1, 2)]
    before = asked(url, "SELECT count(*), max(seq) FROM relet.events")
    with relet.connect(url) as db:
        for ask in (lambda: db.submit("q", 1), lambda: db.claim("q0"), db.sweep, lambda: db.cancel("none")):
            with pytest.raises(UpgradeRequired, match="pip install"):
                ask()
        assert db.stats().total.done >= load.done, "it may still look"
    assert asked(url, "SELECT count(*), max(seq) FROM relet.events") == before
    assert migrate(url, to=release, post=True).steps == []


def test_older_clients_are_not_shut_out_before_all_is_added(url, release):
    with pytest.raises(Conflict, match="relet migrate"):
        migrate(url, to=release, post=True)
    assert asked(url, STATE) == [(1, 1, 1)]


def test_a_dry_run_says_what_it_would_do_and_does_nothing(url, release):
    before = form(url)
    assert migrate(url, to=release, dry_run=True).steps == ["0002_colours.sql"]
    assert form(url) == before
    migrate(url, to=release)
    before = form(url)
    assert migrate(url, to=release, dry_run=True, post=True).steps == ["0002_colours.sql"]
    assert (form(url), asked(url, STATE)) == (before, [(2, 1, 1)])


def test_a_new_store_is_like_one_that_was_migrated(url, release, monkeypatch):
    migrate(url, to=release)
    migrate(url, to=release, post=True)
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        monkeypatch.setattr("relet.store.postgres.connect.steps", lambda *_: steps(release.folder, 2, 2))
        make_tables(connection, url, Dialect("anew"), probe(connection))
    assert form(url, "anew") == form(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA anew CASCADE")


def test_a_long_transaction_of_others_is_not_queued_behind(url, release):
    with Load(url, 2) as load, psycopg.connect(url, application_name="report") as other:
        other.execute("SELECT count(*) FROM relet.tasks")
        began = time.monotonic()
        with pytest.raises(Unavailable, match=r"report \(process \d+ of the server\) for \d+ s") as refused:
            migrate(url, to=release, patience_s=1.5)
        assert time.monotonic() - began < 5
        assert other.info.backend_pid in refused.value.detail["pids"]
        load.goes_on(20)
        assert asked(url, STATE) == [(1, 1, 1)]
        other.rollback()
        assert migrate(url, to=release).schema == 2
    assert load.wrong == []


def test_two_at_a_time_are_refused(url, release):
    with psycopg.connect(url) as other:
        other.execute("SELECT count(*) FROM relet.tasks")
        first = threading.Thread(target=lambda: migrate(url, to=release))
        first.start()
        turn = "SELECT count(*) FROM pg_locks WHERE relation = 'relet.keys'::regclass AND mode = 'RowExclusiveLock'"
        eventually(lambda: asked(url, turn)[0][0])
        with pytest.raises(Conflict, match="somebody else migrates"):
            migrate(url, to=release)
        other.rollback()
        first.join()
    assert asked(url, STATE) == [(2, 1, 1)]


@pytest.mark.faults
@pytest.mark.parametrize("when", ["before", "sent"])
@pytest.mark.parametrize("post", [False, True], ids=["pre", "post"])
def test_killed_at_any_statement_it_leaves_the_old_store_or_the_new_one(url, release, when, post):
    seen = set()
    for n in range(1, 60):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA relet CASCADE")
        relet.connect(url).close()
        if post:
            migrate(url, to=release)
        killed = subprocess.run(
            [sys.executable, KILLED, release.folder, url, "relet", when, str(n), *(["post"] if post else [])],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert killed.returncode == (0 if killed.stdout else -9), killed.stderr
        version, _, min_writer = asked(url, STATE)[0]
        seen.add((version, min_writer))
        with relet.connect(url) as db:
            if min_writer == 1:
                db.submit("q", 1)
                db.claim("q").complete(2)
            else:
                with pytest.raises(UpgradeRequired):
                    db.submit("q", 1)
        eventually(lambda: not asked(url, "SELECT 1 FROM pg_stat_progress_create_index"))
        migrate(url, to=release)
        if post:
            migrate(url, to=release, post=True)
        columns, indexes = form(url)
        assert ("tasks", "colour", "text", "YES", "None") in columns
        assert ("tasks_colour", "True") in indexes
        assert (("tasks_unanswered", "True") in indexes) is not post
        if killed.stdout:
            break
    assert killed.stdout == "done\n", "it has no end"
    assert seen == ({(2, 1), (2, 2)} if post else {(1, 1), (2, 1)})


def test_a_half_migrated_store_is_refused_by_new_clients_with_the_way_out(url, release, monkeypatch):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER TABLE relet.tasks ADD COLUMN colour text")
    monkeypatch.setattr(schema_of_now, "SCHEMA", 2)
    with pytest.raises(UpgradeRequired, match=r"has schema 1, this relet needs 2.*→ relet migrate"):
        relet.connect(url)
    monkeypatch.undo()
    assert migrate(url, to=release).was == 1
    monkeypatch.setattr(schema_of_now, "SCHEMA", 2)
    relet.connect(url).close()


def test_the_store_of_a_later_relet_is_refused(url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE relet.meta SET version = 9, min_reader = 8, min_writer = 9")
    for ask in (lambda: migrate(url), lambda: relet.connect(url)):
        with pytest.raises(UpgradeRequired, match="readers of 8 or newer, this relet has 1; nothing was changed"):
            ask()


def test_where_there_is_no_store_none_is_made(database):
    with pytest.raises(NotFound, match="no store in schema relet"):
        migrate(database)
    assert asked(database, "SELECT count(*) FROM pg_namespace WHERE nspname = 'relet'") == [(0,)]


def test_only_the_owner_of_the_tables_migrates_them(url, release):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA relet TO guest")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA relet TO guest")
        try:
            with pytest.raises(Forbidden, match="only the owner of the tables"):
                migrate(url.replace("postgres@", "guest@"), to=release)
            assert asked(url, STATE) == [(1, 1, 1)]
        finally:
            connection.execute("DROP OWNED BY guest")
            connection.execute("DROP ROLE guest")


def test_a_pooler_is_no_way_to_migrate():
    with PostgresServer() as server, PgBouncer(server) as pooler, server.database() as direct:
        relet.connect(direct).close()
        with pytest.raises(Conflict, match="address of the server itself"):
            migrate(pooler.url(conninfo_to_dict(direct)["dbname"]))


def test_settings_of_tables_that_somebody_took_away_are_set_again(url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER TABLE relet.leases RESET (fillfactor)")
    assert migrate(url, dry_run=True).steps == ["tuning.sql"]
    assert migrate(url).steps == ["tuning.sql"]
    assert migrate(url).steps == []


@pytest.mark.parametrize(
    ("pre", "post", "min_writer"),
    [
        ("ALTER TABLE relet.tasks ADD COLUMN colour text;\n", "", 1),
        ("ALTER TABLE relet.tasks ADD COLUMN IF NOT EXISTS colour text NOT NULL;\n", "", 1),
        ("ALTER TABLE relet.tasks DROP COLUMN code;\n", "", 1),
        ("CREATE INDEX IF NOT EXISTS tasks_colour ON relet.tasks (code);\n", "", 1),
        (PRE, "ALTER TABLE relet.tasks DROP COLUMN code;\n", 1),
        (PRE, "DROP INDEX CONCURRENTLY relet.tasks_id;\n", 2),
    ],
    ids=["twice", "not-null", "takes", "blocks", "writers", "once"],
)
def test_a_step_that_older_clients_cannot_live_beside_is_none(tmp_path, pre, post, min_writer):
    release = next_release(tmp_path / "migrations", pre, post, min_writer)
    with pytest.raises(LookupError, match="0002_colours"):
        steps(release.folder, 2, min_writer)
    with pytest.raises(LookupError, match="do not lead to 3"):
        steps(release.folder, 3, min_writer)


def test_steps_of_now_make_all_tables_at_once():
    texts = fresh(steps(THIS.folder, THIS.schema, THIS.min_writer))
    assert len(texts) > 30
    assert not any("CONCURRENTLY" in text for text in texts)


def test_a_star_stands_for_the_columns_of_the_table_in_their_order(url):
    for alias, table in {"t": "tasks", "l": "leases", "s": "steps", "w": "waits", "e": "effects"}.items():
        rows = asked(
            url, "SELECT column_name FROM information_schema.columns WHERE table_schema = 'relet' "
            "AND table_name = %s ORDER BY ordinal_position", table,
        )  # fmt: skip
        assert ", ".join(f"{alias}.{name}" for (name,) in rows) == COLUMNS[alias]


def test_no_statement_answers_whatever_columns_a_table_has():
    """A star after the name of a table stands for the columns of now; a bare one for those of any release."""
    assert [name for name, text in SQL.items() if "RETURNING *" in text] == []
    assert [name for name, text in SQL.items() if text.startswith("SELECT *")] == []


def test_a_bad_schema_is_told_before_anything_is_asked():
    with pytest.raises(Invalid, match="schema"):
        migrate("postgresql://nobody@127.0.0.1:1/none", "Relet-1")
