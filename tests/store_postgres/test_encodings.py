"""Any text is kept as it was: in a database of UTF8, whatever else a role, a URL or a connection is set to."""

import psycopg
import pytest

import relet
from relet.connect import diagnose
from tests.postgres import PostgresServer
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
TEXT = "kaputt → é日😀"


@pytest.fixture(scope="module")
def server():
    with PostgresServer() as server:
        yield server


@pytest.fixture
def url(server):
    with server.database() as url:
        yield url


@pytest.mark.parametrize("encoding", ["LATIN1", "WIN1252", "EUC_JP", "SQL_ASCII"])
def test_a_database_of_another_encoding_is_refused_before_anything_is_made(server, encoding):
    name = f"in_{encoding.lower()}"
    server.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with pytest.raises(relet.Invalid, match=f"in {encoding}.*CREATE DATABASE") as refused:
        relet.connect(server.url(name))
    assert (refused.value.code, refused.value.detail["field"]) == ("RELET-ENCODING", "url")
    with psycopg.connect(server.url(name)) as connection:
        assert connection.execute("SELECT to_regnamespace('relet')").fetchone() == (None,)
    assert any(f"in {encoding}" in str(finding) for finding in diagnose(server.url(name), "default").findings)
    way = str(refused.value).partition("CREATE DATABASE ")[2].replace("<its name>", f"{name}_anew")
    server.execute(f"CREATE DATABASE {way}")
    kept_whole(server.url(f"{name}_anew"))


def kept_whole(url):
    with relet.connect(url) as db:
        db.submit("q", {"text": TEXT}, id=TEXT, labels={"l": TEXT})
        assert [task.id for task in db.tasks(queue="q", labels={"l": TEXT})] == [TEXT]
        lease = db.claim("q")
        assert lease.input == {"text": TEXT}
        lease.complete(TEXT)
        assert db.result(TEXT) == TEXT


def test_a_role_or_a_url_that_asks_for_another_encoding_changes_nothing(server, url):
    server.execute("CREATE ROLE narrow LOGIN SUPERUSER")
    server.execute("ALTER ROLE narrow SET client_encoding = 'LATIN1'")
    kept_whole(url.replace("postgres@", "narrow@"))
    with relet.connect(url) as db:
        db.prune("1m")
    with server.database() as other:
        kept_whole(f"{other}&client_encoding=SQL_ASCII")


def test_what_a_handler_fails_with_is_kept_whatever_its_letters(server, url):
    server.execute(f"ALTER DATABASE {url.partition('@/')[2].partition('?')[0]} SET client_encoding = 'LATIN1'")
    app = relet.App()

    @app.task(queue="q")
    def job(run):
        raise RuntimeError(TEXT)

    with relet.connect(url) as db, relet.connect(url) as mine, app.worker(mine):
        task = db.submit("q", {}, kind="job", max_attempts=1)
        eventually(lambda: db.task(task.id).state == "failed")
        assert TEXT in db.task(task.id).error


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_transaction_of_another_encoding_is_told(url, encoding):
    with relet.connect(url) as db, psycopg.connect(url) as mine:
        mine.execute(f"SET client_encoding = '{encoding}'")
        with pytest.raises(relet.Invalid, match=f"^tx: .*{encoding}.*client_encoding=utf8"):
            db.submit("q", TEXT, tx=mine)
        mine.rollback()
        mine.execute("SET client_encoding = 'UTF8'")
        db.submit("q", TEXT, tx=mine)
        mine.commit()
        assert db.claim("q").input == TEXT
