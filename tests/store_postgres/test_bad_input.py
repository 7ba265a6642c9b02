"""What is wrong with an address, its server, rights or schema is told in time, with the way out; nothing changes."""

import contextlib
import socket
import struct
import threading
import time

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import relet
from relet.cli.demo import _place
from relet.cli.main import run
from relet.connect import diagnose
from relet.core.errors import Conflict, Forbidden, Invalid, Unavailable, UpgradeRequired
from relet.store.postgres.backend import PostgresBackend
from tests.pgbouncer import PgBouncer
from tests.postgres import PostgresServer
from tests.replicas import Replicas
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
TOLD_S = 5.0
HBA = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


@pytest.fixture(scope="module")
def server():
    """On a port, where it asks for a password; on its socket it does not."""
    with PostgresServer(tcp=True) as server:
        (server.folder / "data" / "pg_hba.conf").write_text(HBA, encoding="utf-8")
        server.execute("ALTER ROLE postgres PASSWORD 'open'")
        server.execute("SELECT pg_reload_conf()")
        yield server


@pytest.fixture
def url(server):
    with server.database() as url:
        yield url


@pytest.fixture
def role(server, url):
    """A user who owns nothing; and the URL by which it comes."""
    server.execute("CREATE ROLE guest LOGIN")
    yield url.replace("postgres@", "guest@")
    execute(url, "DROP OWNED BY guest")
    server.execute("DROP ROLE guest")


@contextlib.contextmanager
def told(kind, words, code=None):
    """Raised in time, in such words, and without a password."""
    began = time.monotonic()
    with pytest.raises(kind, match=words) as refused:
        yield refused
    assert time.monotonic() - began < TOLD_S
    assert "hush" not in str(refused.value) + repr(refused.value.detail)
    assert code is None or refused.value.code == code


def execute(url, *statements):
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else None


def contents(url):
    """All that there is in a database, its form and its rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT schemaname || '.' || quote_ident(tablename) FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
        ).fetchall()
        schemas = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' ORDER BY 1")
        return schemas.fetchall(), {
            name: sorted(map(str, connection.execute(f"SELECT * FROM {name}"))) for (name,) in tables
        }


def works(db):
    """Everything that writes."""
    yield lambda: db.submit("q", 1)
    yield lambda: db.submit_many("q", [1, 2])
    yield lambda: db.claim("q")
    yield db.sweep
    yield lambda: db.queue("q", ttl="30s")
    yield lambda: db.prune("1d")


# -- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://me:hush@127.0.0.1:1/work", "cannot be reached.*refused.*are host and port"),
        ("postgresql://me:hush@no-such-host.invalid/work", "cannot be reached.*no-such-host"),
        ("postgresql://me:hush@/work?host=/no/such/folder", "cannot be reached.*No such file"),
        ("postgresql://me:hush@127.0.0.1:1,127.0.0.1:2/work?target_session_attrs=read-write", "cannot be reached"),
    ],
    ids=["port", "host", "socket", "several"],
)
def test_a_wrong_address_is_told(address, words):
    with told(Unavailable, words, "RELET-UNREACHABLE"):
        relet.connect(address)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://me:hush@here:first/work", "its port is no number of 1 to 65535"),
        ("postgresql://me:hush@here/work?colour=red", "colour.*write postgresql://user@host:5432/database"),
        ("postgresql://me:hush@[here/work", "write postgresql://user@host"),
    ],
    ids=["port", "option", "bracket"],
)
def test_what_is_no_address_is_told_before_anything_is_asked(address, words):
    with told(Invalid, words) as refused:
        relet.connect(address)
    assert refused.value.detail["field"] == "url"


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_server_that_takes_connections_and_says_nothing_is_given_up(hosts):
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen()
        at = ",".join([f"127.0.0.1:{hole.getsockname()[1]}"] * hosts)
        with told(Unavailable, "no answer within", "RELET-UNREACHABLE"):
            relet.connect(f"postgresql://me:hush@{at}/work")


def test_a_wrong_password_an_unknown_user_and_an_unknown_database_are_told(server):
    at = server.tcp_url().replace("postgres@", "{}@")
    for user in ("postgres:hush", "postgres", "nobody:hush"):
        with told(Forbidden, "does not let this user in.*PGPASSWORD", "RELET-LOGIN"):
            relet.connect(at.format(user))
    with told(Forbidden, 'role "stranger" does not exist', "RELET-LOGIN"):
        relet.connect(server.url().replace("postgres@", "stranger@"))
    with told(Invalid, 'database "none" does not exist.*createdb'):
        relet.connect(server.url("none"))


def test_too_many_connections_are_told():
    with (
        PostgresServer(max_connections="5", superuser_reserved_connections="0") as small,
        contextlib.ExitStack() as held,
    ):
        relet.connect(small.url()).close()
        with contextlib.suppress(psycopg.OperationalError):
            for _ in range(6):
                held.enter_context(psycopg.connect(small.url()))
        with told(Unavailable, "too many clients"):
            relet.connect(small.url())


# -- rights ----------------------------------------------------------------------------------------------------------


def test_who_may_not_make_the_schema_is_told_what_its_owner_has_to_do(url, role):
    before = contents(url)
    with told(Forbidden, "CREATE SCHEMA relet AUTHORIZATION", "RELET-RIGHTS"):
        relet.connect(role)
    assert contents(url) == before


def test_who_was_given_a_schema_as_was_told_has_all_that_is_needed(url, role):
    """Beside the store of others, which it may not even look into."""
    relet.connect(url).close()
    execute(url, "CREATE SCHEMA jobs AUTHORIZATION guest")
    with relet.connect(role, schema="jobs") as db:
        assert db.backend.store.can.run
        for work in works(db):
            work()


def test_who_may_not_enter_the_schema_is_told(url, role):
    relet.connect(url).close()
    before = contents(url)
    with told(Forbidden, "permission denied for schema relet.*USAGE on the schema", "RELET-RIGHTS"):
        relet.connect(role)
    assert contents(url) == before


def test_who_may_only_look_looks_and_is_told_what_is_missing_to_write(url, role):
    with relet.connect(url) as db:
        db.submit("q", 1, id="there")
    execute(url, "GRANT USAGE ON SCHEMA relet TO guest", "GRANT SELECT ON ALL TABLES IN SCHEMA relet TO guest")
    before = contents(url)
    with relet.connect(role) as db:
        assert db.task("there").input == 1
        assert db.stats().total.ready == 1
        with told(Forbidden, "sequence tokens.*To read it needs .*SELECT on all its tables and sequences"):
            db.verify()
        execute(url, "GRANT SELECT ON ALL SEQUENCES IN SCHEMA relet TO guest")
        assert db.verify().ok
        execute(url, "REVOKE SELECT ON ALL SEQUENCES IN SCHEMA relet FROM guest")
        for work in works(db):
            with told(Forbidden, "permission denied.*to write as well INSERT, UPDATE, DELETE on all", "RELET-RIGHTS"):
                work()
    assert contents(url) == before
    execute(url, "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA relet TO guest")
    with relet.connect(role) as db, told(Forbidden, "sequence tokens.*UPDATE on all its sequences", "RELET-RIGHTS"):
        db.claim("q")
    execute(url, "GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA relet TO guest")
    with relet.connect(role) as db:
        for work in works(db):
            work()
        db.submit("q", 1)
        db.claim("q").complete(2)


def test_whose_role_is_set_to_read_only_is_told_which_setting(server, url, role):
    relet.connect(url).close()
    server.execute("ALTER ROLE postgres SET default_transaction_read_only = on")
    try:
        with relet.connect(url) as db, told(
            Unavailable, "ALTER ROLE … RESET default_transaction_read_only", "RELET-READ-ONLY"
        ):  # fmt: skip
            db.submit("q", 1)
    finally:
        with psycopg.connect(url, autocommit=True, options="-c default_transaction_read_only=off") as connection:
            connection.execute("ALTER ROLE postgres RESET default_transaction_read_only")


@pytest.mark.parametrize("named", ["", "#jobs"])
def test_who_may_make_no_schema_is_told_what_helps_a_demo(url, role, named, capsys):
    before = contents(url)
    database = conninfo_to_dict(url)["dbname"]
    assert run(["demo", "--url", f"{role}{named}"]) == 4
    told = capsys.readouterr().err
    assert (f"GRANT CREATE ON DATABASE {database} TO guest" in told, "AUTHORIZATION" in told) == (True, False)
    assert contents(url) == before
    with _place(f"{url}{named}") as place:
        assert (place.url, place.schema.startswith("relet_demo_")) == (url, True)


# -- servers and poolers ---------------------------------------------------------------------------------------------


def old_server(listener):
    """Just as much of the protocol as it takes to say that it is PostgreSQL 9.6."""

    def reply(kind, body):
        return kind + struct.pack("!I", len(body) + 4) + body

    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection:
                while struct.unpack("!II", connection.recv(8))[1] != 196_608:
                    connection.sendall(b"N")  # neither TLS nor GSS
                connection.recv(4096)
                connection.sendall(
                    reply(b"R", struct.pack("!I", 0)) + reply(b"S", b"server_version\x009.6.24\0")
                    + reply(b"S", b"client_encoding\0UTF8\0") + reply(b"K", struct.pack("!II", 1, 1))
                    + reply(b"Z", b"I")
                )  # fmt: skip
                connection.recv(4096)


def test_a_server_that_is_too_old_is_told():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        threading.Thread(target=old_server, args=[listener], daemon=True).start()
        url = f"postgresql://me:hush@127.0.0.1:{listener.getsockname()[1]}/work"
        with told(Invalid, "is PostgreSQL 9; relet needs 15 or newer"):
            relet.connect(url)
        report = diagnose(url, "default")
        assert "server" in {one.check for one in report.findings}
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.slow
def test_a_standby_shows_everything_and_refuses_writes():
    with Replicas(synchronous=False) as pair:
        with told(Unavailable, "is a standby.*target_session_attrs=read-write", "RELET-READ-ONLY"):
            relet.connect(pair.standby.url())
        with relet.connect(pair.primary.url()) as db:
            db.submit("q", 1, id="there")
            lease = db.claim("q")
        pair.catch_up()
        before = contents_of_standby(pair)
        with relet.connect(pair.standby.url()) as db:
            assert db.task("there").live
            assert [one.id for one in db.tasks()] == ["there"]
            assert db.verify().ok
            for work in [*works(db), db.lease(lease.handle).renew]:
                with told(Unavailable, "is a standby.*target_session_attrs=read-write", "RELET-READ-ONLY"):
                    work()
        assert contents_of_standby(pair) == before


def contents_of_standby(pair):
    return pair.standby.value("SELECT count(*) FROM relet.events"), pair.standby.value(
        "SELECT count(*) FROM relet.tasks"
    )


def test_a_pooler_without_transactions_is_told(server, url):
    before = contents(url)
    with PgBouncer(server, pool_mode="statement") as pooler, told(Invalid, "pool_mode = transaction", "RELET-POOLER"):
        relet.connect(pooler.url(conninfo_to_dict(url)["dbname"]))
    assert contents(url) == before


# -- schemas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "Relet", "a b", 'a"; DROP TABLE x; --', "pg_mine", "1st", "é", "a" * 64, "a.b"])
def test_what_cannot_be_a_schemas_name_is_told(url, name):
    before = contents(url)
    with told(Invalid, "up to 63 small letters") as refused:
        PostgresBackend(url, "default", name)
    assert refused.value.detail["field"] == "schema"
    assert contents(url) == before


@pytest.mark.parametrize("name", ["public", "information_schema"])
def test_a_schema_that_is_everybodys_is_told(url, name):
    with told(Invalid, "is not relet's alone; name one"):
        PostgresBackend(url, "default", name)


def test_a_schema_that_holds_other_tables_is_left_as_it_is(url):
    execute(
        url, "CREATE SCHEMA relet", "CREATE TABLE relet.invoices (n int)", "INSERT INTO relet.invoices VALUES (1)"
    )
    before = contents(url)
    with told(Invalid, r"holds other tables \(such as invoices\).*schema='relet_jobs'", "RELET-NOT-A-STORE"):
        relet.connect(url)
    assert contents(url) == before


def test_a_table_of_the_same_name_that_is_none_of_ours_is_told(url):
    execute(url, "CREATE SCHEMA relet", "CREATE TABLE relet.meta (mine int)", "INSERT INTO relet.meta VALUES (1)")
    before = contents(url)
    with told((Unavailable, Invalid), "relet doctor|schema="):
        relet.connect(url)
    assert contents(url) == before


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("version = 9, min_reader = 9, min_writer = 9", "asks for readers of 9 or newer, this relet has 1"),
        ("version = 0", "has schema 0, this relet needs 1; nothing was changed.*→ relet migrate"),
    ],
    ids=["newer", "half"],
)
def test_a_schema_of_another_release_is_told(url, state, words):
    relet.connect(url).close()
    execute(url, f"UPDATE relet.meta SET {state}")
    before = contents(url)
    with told(UpgradeRequired, words):
        relet.connect(url)
    assert contents(url) == before


@pytest.mark.parametrize("table", ["tasks", "run", "events", "places", "totals"])
def test_a_store_that_misses_a_table_is_told(url, table):
    relet.connect(url).close()
    execute(url, f"DROP TABLE relet.{table}")
    before = contents(url)
    with told((Unavailable, Conflict), "→ relet doctor", "RELET-DAMAGED"), relet.connect(url) as db:
        for work in works(db):
            work()
        db.stats()
        db.queue("q", concurrency=1)
    gone = {name: rows for name, rows in contents(url)[1].items() if name not in before[1]}
    assert gone == {}


def test_a_store_whose_own_row_is_gone_is_told(url):
    with relet.connect(url) as db:
        execute(url, "DELETE FROM relet.meta")
        before = contents(url)
        for work in works(db):
            with told((Unavailable, UpgradeRequired), "own row is gone.*nothing was written|own row is gone"):
                work()
    with told(Unavailable, "own row is gone; restore a backup", "RELET-DAMAGED"):
        relet.connect(url)
    assert contents(url) == before


def test_a_schema_that_is_dropped_under_a_client_is_told(url):
    with relet.connect(url) as db:
        db.submit("q", 1)
        execute(url, "DROP SCHEMA relet CASCADE")
        for work in works(db):
            with told(Unavailable, "→ relet doctor", "RELET-DAMAGED"):
                work()
    assert eventually(lambda: contents(url)[1] == {})
