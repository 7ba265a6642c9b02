"""Every finding about a server that has a store, made true over facts; and none where all is well."""

import msgspec
import pytest

from relet.core.doctor import server_checks
from relet.core.doctor.examine import examine
from relet.core.doctor.facts import Facts
from relet.core.doctor.moved import Moved
from relet.core.doctor.server_checks import SERVER_CHECKS
from relet.core.doctor.server_facts import (
    RightsFacts,
    SchemaFacts,
    ServerClockFacts,
    ServerFacts,
    SessionFacts,
    TableFacts,
)

SCHEMA = SchemaFacts(version=2, knows=2, min_writer=2, raises_to=2)
CLOCK = ServerClockFacts(off_ms=3.0, within_ms=1.0)
MOVED = Moved(to="/srv/work.db", told="it was taken back")
TABLE = TableFacts(name="leases", live=100_000, dead=100, bytes=1 << 20, index_bytes=1 << 21)
SESSION = SessionFacts(pid=7, name="report", open_s=5, is_idle=False, holds_back=True)
WELL = ServerFacts(
    place="postgresql://db/work", version=180_006, least_version=140_000, schema=SCHEMA, is_standby=False,
    settings={"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "autovacuum": "on"}, clock=CLOCK,
    tables=[TABLE], sessions=[SESSION], connections=10, connections_most=100, artifacts="s3://bucket",
)  # fmt: skip
with_ = msgspec.structs.replace
RIGHTS = RightsFacts(role="me", database="work")
MANY = server_checks.DEAD_LEAST


def report(**changes):
    return examine("here", Facts(server=with_(WELL, **changes)))


def schema(**changes):
    return {"schema": with_(SCHEMA, **changes)}


def settings(**changes):
    return {"settings": WELL.settings | changes}


def table(**changes):
    return {"tables": [with_(TABLE, **changes)]}


def session(**changes):
    return {"sessions": [with_(SESSION, **changes)]}


def seen(check, **changes):
    (found,) = (one.seen for one in report(**changes).checks if one.check == check)
    return found


AMISS = [
    ("server", {"version": 130_004}, "PostgreSQL 13.4 is too old; relet needs 14", "upgrade it"),
    ("schema", {"schema": None}, "holds no store", "--url"),
    ("schema", {"schema": None, "rights": RIGHTS}, "holds no store", "a submit makes a new one"),
    ("schema", {"schema": None, "rights": with_(RIGHTS, may_make=False)}, "holds no store", "CREATE SCHEMA relet"),
    ("schema", schema(version=1), "half way to a newer one; this relet needs 2", "relet migrate"),
    ("schema", schema(missing=["waits", "keys"]), "tables are missing: waits, keys", "restore a backup"),
    ("schema", schema(invalid=["tasks_x"]), "of no use: tasks_x", "REINDEX INDEX CONCURRENTLY relet.tasks_x"),
    ("moved", {"moved": MOVED}, "it was taken back; nobody may use what is here", "relet copy"),
    ("role", {"is_standby": True}, "refuses every write", "target_session_attrs=read-write"),
    ("role", {"rights": with_(RIGHTS, read_only_by="user")}, "every write is refused", "ALTER ROLE me RESET"),
    ("role", {"rights": with_(RIGHTS, read_only_by="database")}, "set by: database", "ALTER DATABASE work RESET"),
    ("role", {"rights": with_(RIGHTS, read_only_by="database user")}, "set by", "ALTER ROLE me IN DATABASE work"),
    ("role", {"rights": with_(RIGHTS, read_only_by="client")}, "set by: client", "PGOPTIONS"),
    ("role", {"rights": with_(RIGHTS, read_only_by="configuration file")}, "every write", "ALTER SYSTEM RESET"),
    ("role", {"rights": with_(RIGHTS, not_granted=["a", "b", "c", "d"])}, "all of the store: a, b, c and 1", "GRANT"),
    ("durability", settings(fsync="off"), "fsync is off: .* (promise P5)", "SET fsync = on"),
    ("durability", settings(full_page_writes="off"), "full_page_writes is off", "pg_reload_conf"),
    ("sessions", {"skips_locked": False}, "no SKIP LOCKED", "RELET_POSTGRES_WITHOUT"),
    ("sessions", {"knows_its_run": False}, "a failover that lost commits goes unnoticed", "run"),
    ("clock", {"clock": with_(CLOCK, off_ms=-9_000.0)}, "9 s behind this machine's", "NTP"),
    ("vacuum", settings(autovacuum="off"), "autovacuum is off", "SET autovacuum = on"),
    ("vacuum", table(is_vacuumed=False), "off for relet.leases", "RESET (autovacuum_enabled)"),
    ("vacuum", table(live=MANY, dead=MANY), "10000 of 20000 row versions in relet.leases", "VACUUM"),
    ("snapshots", session(open_s=90), "process 7 of the server (report) has been open for 90 s", "terminate"),
    ("snapshots", session(open_s=90, pid=None, name="two"), "two, prepared, has been", "ROLLBACK PREPARED 'two'"),
    ("locks", session(open_s=20, tables=["tasks"]), "has locks on tables of the store (tasks)", "end it there"),
    ("idle", session(open_s=20, is_idle=True), "is idle within its transaction", "SET transaction_timeout"),
    ("idle", session(open_s=20, is_idle=True) | {"version": 150_004}, "is idle", "idle_in_transaction_session"),
    ("tables", schema(untuned=["a_run_ends_with_a_crash"]), "not in place (a run ends with a", "relet migrate"),
    ("connections", {"connections": 90}, "90 of 100 connections are in use", "pool_mode = transaction"),
    ("artifacts", {"artifacts": None, "names_artifacts": True}, "no other can read them", "RELET_ARTIFACTS"),
]  # fmt: skip


def test_where_all_is_well_every_check_says_what_it_saw():
    found = report()
    assert found.findings == []
    assert [one.check for one in found.checks] == [one.name for one in SERVER_CHECKS if one.name != "tenants"]
    assert all(one.ok and one.seen for one in found.checks)


@pytest.mark.parametrize(
    ("check", "changes", "evidence", "fix"), AMISS, ids=[f"{one[0]}-{n}" for n, one in enumerate(AMISS)]
)
def test_what_is_amiss_is_told_with_its_evidence_and_the_way_out(check, changes, evidence, fix):
    (finding,) = report(**changes).findings
    assert finding.check == check
    for part in evidence.split(".* "):
        assert part in finding.evidence
    assert fix in finding.fix


def test_every_check_of_a_server_has_a_finding():
    assert {one.name for one in SERVER_CHECKS} - {"opens", "tenants"} == {one[0] for one in AMISS}


def test_of_a_server_that_cannot_be_reached_only_that_is_told():
    found = examine("here", Facts(server=ServerFacts(place="here"), refused="the port is closed"))
    assert [one.check for one in found.checks] == ["opens"]
    assert [one.evidence for one in found.findings] == ["the port is closed"]


def test_what_is_as_it_may_be_is_seen_and_no_finding():
    for check, changes, words in [
        ("schema", schema(raises_to=3), "relet migrate --post"),
        ("role", {"standbys": ["s1 sync"]}, "primary, followed by s1 sync"),
        ("role", {"standbys": ["s1 async"]}, "can lose what was acknowledged last"),
        ("durability", settings(synchronous_commit="off"), "off (relet commits with on)"),
        ("sessions", {"own_session": False, "listens": False}, "a pooler's sessions"),
        ("sessions", {"listens": False}, "5 times a second"),
        ("sessions", {"without": ["prepare", "tuning"]}, "does without prepare, tuning"),
        ("clock", {"clock": with_(CLOCK, ahead_ms=4_000)}, "store time is 4 s ahead of it"),
        ("clock", {"clock": with_(CLOCK, ahead_ms=-4_000)}, "store time is 4 s behind it"),
        ("clock", {"clock": with_(CLOCK, off_ms=6_000.0, within_ms=2_000.0)}, "6 s ahead of"),
        ("vacuum", table(live=10 * MANY, dead=MANY), f"{MANY} dead row versions in leases"),
        ("vacuum", table(live=0, dead=10), "10 dead row versions"),
        ("snapshots", {"sees_others": False}, "pg_read_all_stats"),
        ("artifacts", {"artifacts": None}, "none are named yet"),
    ]:
        assert words in seen(check, **changes), check
        assert report(**changes).findings == [], check


def test_a_store_that_the_role_may_not_look_into_is_no_reason_to_make_a_new_one():
    store, role = report(schema=None, rights=with_(RIGHTS, not_granted=["meta"])).findings
    assert "may not look into the one that there seems to be" in store.fix
    assert (role.check, "GRANT USAGE ON SCHEMA" in role.fix) == ("role", True)


def test_what_could_not_be_found_out_is_not_asked():
    unknown = {"is_standby": None, "settings": {}, "clock": None, "tables": [], "connections": None}
    asked = [one.check for one in report(**unknown).checks]
    assert asked == ["server", "schema", "moved", "opens", "sessions", "snapshots", "locks", "idle", "artifacts"]


def test_without_a_server_none_of_it_is_asked():
    assert all(check.ask(Facts()) is None for check in SERVER_CHECKS if check.name not in {"opens", "tenants"})
