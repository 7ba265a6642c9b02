"""Nothing depends on one session of the database: behind a pooler each transaction may meet another one."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import relet
from relet.store import postgres
from tests.pgbouncer import PgBouncer
from tests.postgres import PostgresServer

pytestmark = pytest.mark.postgres
SOURCE = Path(postgres.__file__).parent


@pytest.fixture(scope="module")
def server():
    with PostgresServer(tcp=True) as server:
        yield server


@pytest.fixture
def pooled(server):
    with PgBouncer(server) as pooler, server.database(at=pooler.url) as url:
        yield url


def test_pg_01_many_clients_work_behind_a_pooler_of_transactions(pooled):
    with relet.connect(pooled) as db, relet.connect(pooled) as other:
        assert not db.backend.store.can.own_session
        tasks = db.submit_many("q", list(range(40)))

        def work(client):
            done = 0
            while (lease := client.claim("q", ttl=30)) is not None:
                lease.save(lease.input)
                assert lease.renew() > 0
                lease.complete(lease.input)
                done += 1
            return done

        with ThreadPoolExecutor() as threads:
            done = list(threads.map(work, [db, other, db, other]))
        assert sum(done) == 40
        assert [db.result(task.id) for task in tasks] == list(range(40))


def test_pg_01_no_statement_leaves_anything_with_a_session(pooled, server):
    with relet.connect(pooled) as db:
        db.submit("q", id="t")
        db.claim("q").complete()
        name = psycopg.conninfo.conninfo_to_dict(pooled)["dbname"]
        with psycopg.connect(server.url(name), autocommit=True) as looker:
            locks = looker.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()[0]
        with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as same:
            found = same.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()[0]
            settings = same.execute(
                "SELECT count(*) FROM pg_settings WHERE source = 'session' AND name IN "
                "('lock_timeout', 'synchronous_commit', 'plan_cache_mode', 'enable_seqscan', 'search_path')"
            ).fetchone()[0]
        assert (locks, found, settings) == (0, 0, 0)


@pytest.mark.case("PG-01")
def test_locks_of_sessions_are_in_no_text():
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*") if path.suffix in (".py", ".sql")]
    assert not [
        text for text in texts if re.search(r"pg_(try_)?advisory_lock\(|CREATE TEMP|DECLARE .* WITH HOLD", text)
    ]
