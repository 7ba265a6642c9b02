"""doctor, and the other commands of whoever looks after a store, on a server: they work, or say what does instead."""

import contextlib
import json
import subprocess

import psycopg
import pytest

import relet
from relet.cli.main import run
from relet.connect import diagnose
from relet.core.doctor import server_checks
from relet.store.postgres import examine
from tests.pgbouncer import PgBouncer
from tests.postgres import PostgresServer, programs, reachable
from tests.replicas import Replicas
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
SAFE = {"fsync": "on", "full_page_writes": "on", "max_prepared_transactions": "2"}


@pytest.fixture(scope="module")
def server():
    """One that is set as it should be."""
    with PostgresServer(tcp=True, **SAFE) as server:
        yield server


@pytest.fixture
def url(server):
    with server.database() as url:
        relet.connect(url).close()
        yield url


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RELET_ARTIFACTS", raising=False)

    def call(*args):
        capsys.readouterr()
        code = run([str(arg) for arg in args])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def soon(monkeypatch):
    """What is found after a minute is found at once."""
    for name in ("OPEN_S", "IDLE_S"):
        monkeypatch.setattr(server_checks, name, 0)
    monkeypatch.setattr(examine, "IDLE_S", 0)


@contextlib.contextmanager
def session(url, *statements, **options):
    with psycopg.connect(url, **options) as connection:
        for statement in statements:
            connection.execute(statement)
        yield connection
        connection.rollback()


def execute(url, *statements):
    with session(url, *statements, autocommit=True):
        pass


def findings(url):
    return {one.check: one for one in diagnose(url, "default").findings}


def seen(url):
    return {one.check: one.seen for one in diagnose(url, "default").checks}


def test_a_store_that_is_well_says_what_was_looked_at(command, url):
    code, out, _ = command("doctor", "--url", url)
    assert (code, out.splitlines()[0].partition(" with ")[0]) == (0, "all is well")
    looked = [line.split()[0] for line in out.splitlines()[1:]]
    assert looked[:4] == ["server", "schema", "moved", "opens"]
    assert {"clock", "vacuum", "connections"} <= set(looked)
    code, out, _ = command("doctor", "--url", url, "--json")
    assert json.loads(out)["findings"] == []


def test_where_there_is_no_store_none_is_made(command, server):
    with server.database() as url:
        code, out, _ = command("doctor", "--url", url)
        assert code == 8
        assert "schema: schema relet of postgresql://" in out
        with session(url) as connection:
            assert connection.execute("SELECT to_regnamespace('relet')").fetchone() == (None,)


def test_a_server_that_cannot_be_reached_is_a_finding(command):
    code, out, _ = command("doctor", "--url", "postgresql://me:hush@127.0.0.1:1/work")
    assert code == 8
    assert "opens: postgresql://127.0.0.1:1/work cannot be reached" in out
    assert ("hush" in out, "well:" in out) == (False, False)


def test_settings_that_lose_what_was_acknowledged_are_found(database):
    relet.connect(database).close()
    told = diagnose(database, "default").findings
    assert [(one.check, one.detail["setting"]) for one in told] == [
        ("durability", "fsync"), ("durability", "full_page_writes"),
    ]  # fmt: skip
    assert "promise P5" in told[0].evidence


def test_work_of_every_tenant_is_looked_at(url):
    with relet.connect(url, tenant="acme") as db:
        db.submit("q", 1, id="bad", max_attempts=1)
        db.claim("q").fail("no", retry=False)
    found = findings(url)["dead-letters"]
    assert found.tenant == "acme"
    assert "--tenant acme" in found.fix


def test_transactions_that_are_left_open_are_found(url, soon):
    with session(url, "SELECT count(*) FROM relet.tasks", application_name="shell") as other:
        found = findings(url)
        assert {"locks", "idle"} <= set(found)
        assert (found["locks"].detail["pid"], found["locks"].detail["name"]) == (other.info.backend_pid, "shell")
        assert "tasks" in found["locks"].detail["tables"]
    with session(url, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT 1"):
        assert "claims and renewals slow down" in findings(url)["snapshots"].evidence
    execute(url, "BEGIN", "CREATE TABLE mine (it int)", "PREPARE TRANSACTION 'half'")
    try:
        assert findings(url)["snapshots"].fix == "end it there, or: ROLLBACK PREPARED 'half'"
    finally:
        execute(url, "ROLLBACK PREPARED 'half'")
    assert findings(url) == {}


def test_tables_that_are_not_cleaned_are_found(url, monkeypatch):
    monkeypatch.setattr(server_checks, "DEAD_LEAST", 100)
    execute(
        url, "ALTER TABLE relet.lapses SET (autovacuum_enabled = off)",
        "INSERT INTO relet.lapses (second, n) SELECT n, 1 FROM generate_series(1, 500) n", "DELETE FROM relet.lapses",
    )  # fmt: skip
    found = eventually(lambda: [one for one in diagnose(url, "default").findings if "dead" in one.detail])
    assert "VACUUM (ANALYZE) relet.lapses" in found[0].fix
    assert any("RESET (autovacuum_enabled)" in one.fix for one in diagnose(url, "default").findings)


def test_what_is_gone_unfinished_or_set_otherwise_is_found(url):
    execute(
        url, "DROP TABLE relet.places", "ALTER TABLE relet.run SET LOGGED",
        "INSERT INTO relet.lapses (second, n) VALUES (1, 1), (1, 2)",
    )  # fmt: skip
    with contextlib.suppress(psycopg.errors.UniqueViolation):
        execute(url, "CREATE UNIQUE INDEX CONCURRENTLY half ON relet.lapses (second)")
    told = [one.evidence for one in diagnose(url, "default").findings]
    assert any("tables are missing: places" in one for one in told)
    assert any("of no use: half" in one for one in told)
    assert any("a run ends with a crash" in one for one in told)


def test_too_many_connections_are_found(url, monkeypatch):
    monkeypatch.setattr(server_checks, "CONNECTIONS_SHARE", 0.0)
    assert "connections are in use" in findings(url)["connections"].evidence


def test_bytes_that_only_one_machine_has_are_found(url, monkeypatch):
    monkeypatch.delenv("RELET_ARTIFACTS", raising=False)
    execute(
        url, "INSERT INTO relet.artifacts (task_seq, name, uri, sha256, size, token, wall_ms) "
        "VALUES (1, 'a', 'b', 'c', 1, 1, 1)",
    )  # fmt: skip
    assert "RELET_ARTIFACTS" in findings(url)["artifacts"].fix
    monkeypatch.setenv("RELET_ARTIFACTS", "/srv/shared")
    assert "artifacts" not in findings(url)


def test_a_role_that_may_see_little_is_told_so(server, url):
    execute(
        url, "DROP ROLE IF EXISTS little", "CREATE ROLE little LOGIN", "GRANT USAGE ON SCHEMA relet TO little",
        "GRANT SELECT ON ALL TABLES IN SCHEMA relet TO little",
    )  # fmt: skip
    try:
        with session(url, "SELECT 1"):
            report = diagnose(url.replace("postgres@", "little@"), "default")
        (found,) = report.findings
        assert (found.check, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES" in found.fix) == ("role", True)
        assert {"tasks", "tokens"} <= set(found.detail["names"])
        for granted in (
            "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN", "SELECT, USAGE, UPDATE ON ALL SEQUENCES IN",
            "USAGE ON",
        ):  # fmt: skip
            assert f"GRANT {granted} SCHEMA relet TO little" in found.fix
        execute(url, *(part for part in found.fix.removeprefix("an owner runs ").split("; ") if part[0] == "G"))
        assert "role" not in {one.check for one in diagnose(url.replace("postgres@", "little@"), "default").findings}
        assert "pg_read_all_stats" in next(one.seen for one in report.checks if one.check == "locks")
    finally:
        execute(url, "DROP OWNED BY little", "DROP ROLE little")


@pytest.mark.parametrize(
    ("how", "way"),
    [
        ("ROLE little SET", "ALTER ROLE little RESET default_transaction_read_only"),
        ("DATABASE {} SET", "ALTER DATABASE {} RESET default_transaction_read_only"),
        ("ROLE little IN DATABASE {} SET", "ALTER ROLE little IN DATABASE {} RESET default_transaction_read_only"),
        (None, "take it out of the options of the URL"),
    ],
    ids=["role", "database", "both", "url"],
)
def test_a_role_whose_transactions_write_nothing_is_found(url, how, way):
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    execute(url, "DROP ROLE IF EXISTS little", "CREATE ROLE little LOGIN SUPERUSER")
    as_little = url.replace("postgres@", "little@")
    if how is None:
        as_little += "&options=-cdefault_transaction_read_only%3Don"
    else:
        execute(url, f"ALTER {how.format(name)} default_transaction_read_only = on")
    try:
        found = findings(as_little)["role"]
        assert (way.format(name) in found.fix, "every write is refused" in found.evidence) == (True, True)
        if how is not None:
            with session(url, options="-cdefault_transaction_read_only=off", autocommit=True) as mine:
                mine.execute(found.fix)
            assert findings(as_little) == {}
    finally:
        with session(url, options="-cdefault_transaction_read_only=off", autocommit=True) as mine:
            mine.execute("DROP ROLE little")


def test_who_may_not_make_a_store_is_told_so_where_there_is_none(server, url):
    execute(url, "DROP ROLE IF EXISTS little", "CREATE ROLE little LOGIN")
    as_little = url.replace("postgres@", "little@")
    try:
        assert "this role may not look into the one" in findings(as_little)["schema"].fix
        assert set(findings(as_little)) == {"schema", "role"}
        execute(url, "DROP SCHEMA relet CASCADE")
        fix = findings(as_little)["schema"].fix
        assert ("AUTHORIZATION little" in fix, "a submit makes a new one" in fix) == (True, False)
        execute(url, "CREATE SCHEMA relet AUTHORIZATION little")
        assert "a submit makes a new one" in findings(as_little)["schema"].fix
    finally:
        execute(url, "DROP OWNED BY little", "DROP ROLE little")


def test_a_pooler_is_seen(server, url):
    with PgBouncer(server) as pooler:
        by = pooler.url(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
        assert findings(by) == {}
        assert seen(by)["sessions"].startswith("a pooler's sessions")


@pytest.mark.slow
def test_a_standby_is_found_and_its_work_is_looked_at(command):
    with Replicas(synchronous=False, **SAFE) as pair:
        with relet.connect(pair.primary.url()) as db:
            db.submit("q", 1, id="one")
        pair.catch_up()
        found = findings(pair.standby.url())
        assert set(found) == {"role"}
        assert "followed by standby async" in seen(pair.primary.url())["role"]
        code, out, _ = command("ls", "--url", pair.standby.url())
        assert (code, "one" in out) == (0, True)


def test_commands_that_look_work_on_a_server(command, url):
    with relet.connect(url) as db:
        for _ in range(3):
            db.submit("q", 1)
            db.claim("q").complete(2)
    at = ("--url", url)
    assert command("tenants", *at)[1].split() == ["TENANT", "QUEUES", "default", "1"]
    assert "3" in command("stats", *at)[1]
    assert "3 looked at" in command("advise", *at)[1]
    code, _, err = command("verify", *at)
    assert (code, "3 tasks, 3 leases" in err, "all holds" in err) == (0, True, True)
    assert command("verify", "--no-bytes", *at)[0] == 0
    execute(url, "UPDATE relet.tasks SET updated_wall_ms = 0")
    would = command("prune", "--older", "1d", "--dry-run", *at)[1]
    assert len(would.split()) == 2, "the end of all events stays"
    assert command("prune", "--older", "1d", *at)[1] == would
    assert command("migrate", *at)[1] == "schema 1, nothing to do\n"
    assert command("migrate", "--post", *at)[1] == "schema 1, nothing to do\n"
    execute(url, "DELETE FROM relet.leases")
    assert command("verify", *at)[0] == 8


@pytest.mark.parametrize("verb", ["stats", "advise", "ls", "prune", "sweep", "limits"])
def test_commands_that_look_make_no_store(command, server, verb):
    with server.database() as url:
        code, _, err = command(verb, "--url", url)
        assert (code, "there is no store in it yet" in err) == (0, True)
        with session(url) as connection:
            assert connection.execute("SELECT to_regnamespace('relet')").fetchone() == (None,)


@pytest.mark.parametrize("verb", ["tenants", "verify", "migrate"])
def test_commands_that_need_a_store_say_that_there_is_none(command, server, verb):
    with server.database() as url:
        code, _, err = command(verb, "--url", url)
        assert (code, "there is no store in schema relet" in err) == (10, True)


@pytest.mark.parametrize(
    ("args", "way"),
    [
        (["backup", "copy.db"], "pg_dump"), (["restore", "copy.db"], "pg_restore"),
        (["adopt"], "begins a new epoch of tokens"),
    ],
)  # fmt: skip
def test_what_a_server_does_by_its_own_means_is_refused_with_them(command, url, args, way):
    code, _, err = command(*args, "--url", url)
    assert (code, way in err) == (2, True)


def test_a_restored_schema_gives_out_no_token_again(url, tmp_path):
    tool = reachable(programs())
    with relet.connect(url) as db:
        db.submit("q", 1, id="a")
        held = db.claim("q", ttl="1h")
        dump = [tool / "pg_dump", "--format=custom", "--schema=relet", "--no-unlogged-table-data"]
        subprocess.run([*dump, "-f", tmp_path / "dump", url], check=True)
        db.submit("q", 1, id="b")
        last = db.claim("q").token
    execute(url, "DROP SCHEMA relet CASCADE")
    subprocess.run([tool / "pg_restore", "-d", url, tmp_path / "dump"], check=True)
    with relet.connect(url) as db:
        db.submit("q", 1, id="c")
        assert db.claim("q").token > last
        assert held.token < last
        assert db.task("a").live
        assert db.verify().ok
