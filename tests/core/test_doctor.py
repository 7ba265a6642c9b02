"""Every finding of the doctor, made true over facts; and none where all is well."""

import msgspec
import pytest

from relet.core import limits
from relet.core.doctor.condition import (
    Aged,
    Condition,
    DeadLetters,
    Lapsed,
    QueueKnobs,
    Quiet,
    ReadyKind,
    RecentClaims,
    Repeated,
)
from relet.core.doctor.examine import CHECKS, examine
from relet.core.doctor.facts import ClockFacts, Facts, FileFacts, PlaceFacts, ProcessFacts, StateFacts
from relet.core.doctor.moved import Moved
from relet.core.doctor.report import duration, size

NOW = 1_800_000_000_000
MOVED = Moved(to="postgresql://db/work", told="it was copied there")
LONG_AGO = NOW - limits.DOCTOR_UNCLAIMED_MS
FILE = FileFacts(
    path="/srv/my work.db", exists=True, file_system="ext4", free_bytes=1 << 40, wal_bytes=1 << 20,
    journal_mode="wal", synchronous=2, schema=7, knows_schema=7,
)  # fmt: skip
CLOCK = ClockFacts(
    source="monotonic", boot_id="boot", machine_id="machine", time_namespace="1", store_boot_id="boot",
    store_machine_id="machine", store_time_namespace="1",
)  # fmt: skip
STATE = StateFacts(folder="/state", exists=True, writable=True, store_id="s", has_mark=True)
PLACE = PlaceFacts(engine="3.54.1", engine_trouble=None, file=FILE, clock=CLOCK, state=STATE, processes=[])
CLAIMS = RecentClaims(
    queue="q", kind="k", count=100, lapsed=4, last_wall_ms=NOW, last_ttl_ms=60_000, last_priority=0, last_seq=9,
    last_share="",
)  # fmt: skip
READY = ReadyKind(
    queue="q", kind="k", count=3, task_id="a task", ready_wall_ms=LONG_AGO, priority=0, seq=5, share=""
)  # fmt: skip
QUEUE = QueueKnobs(name="q", paused=False, ttl_ms=None, max_hold_ms=None)
HELD = {"count": 2, "task_id": "t-1", "queue": "q", "holder": "A", "token": 9, "ttl_ms": 60_000}
REPEATED = Repeated(count=1, task_id="a task", queue="q", kind="k", leases=12, span_ms=300_000)
AGED = Aged(count=2, id="e-1", task_id="t-1", age_ms=7_200_000)
WORK = Condition(
    tenant="default", wall_ms=NOW, lapsed=None, quiet=None,
    queues=[QUEUE], ready=[READY], recent=[CLAIMS], busy=[], repeated=None,
    unknown_effects=None, stalled=None, unanswered=None, dead=[],
)  # fmt: skip
WELL = Facts(place=PLACE, work=[WORK])
with_ = msgspec.structs.replace
OTHER = with_(CLAIMS, kind="other")
OLDER = with_(READY, ready_wall_ms=LONG_AGO - 600_000)
PATIENCE = limits.DOCTOR_UNCLAIMED_MS


def place(**changes):
    return with_(WELL, place=with_(PLACE, **changes))


def file(**changes):
    return place(file=with_(FILE, **changes))


def clock(**changes):
    return place(clock=with_(CLOCK, **changes))


def state(**changes):
    return place(state=with_(STATE, **changes))


def work(**changes):
    return with_(WELL, work=[with_(WORK, **changes)])


def found(facts):
    return {one.check for one in examine("here", facts).findings}


AMISS = [
    ("engine", place(engine_trouble="SQLite 3.40.0 can corrupt"), "3.40.0", "pip install"),
    ("one-engine", place(processes=[ProcessFacts(pid=7, command="app", engines=2)]), "process 7 (app)", "apsw"),
    ("file", file(exists=False), "there is no file /srv/my work.db", "--url"),
    ("file", file(schema=6), "schema 6, this relet needs 7", "relet migrate"),
    ("moved", file(moved=MOVED), "it was copied there; this file can be read", "copy 'sqlite:////srv/my work.db'"),
    ("opens", with_(WELL, refused="it is locked", work=[]), "it is locked", "message"),
    ("tenants", with_(WELL, others=["-z", "zz"]), "looked at in one go, which are 1", "relet doctor --tenant -z"),
    ("file-system", file(file_system="nfs"), "is on nfs, a shared drive", "relet adopt"),
    ("file-system", file(file_system="tmpfs"), "which is memory", "on a disk"),
    ("rights", file(open_to_others=["/srv/my work.db"]), "others than the owner", "chmod go= '/srv/my work.db'"),
    ("journal-mode", file(journal_mode="delete"), "journal mode delete", "journal_mode"),
    ("sync-mode", file(synchronous=1), "synchronous=1", "apsw"),
    ("wal-size", file(wal_bytes=limits.DOCTOR_WAL_BYTES + 1), "work.db-wal has 64.0 MiB", "long transaction"),
    ("free-space", file(free_bytes=limits.DOCTOR_FREE_BYTES - 1), "has 256.0 MiB left", "free some space"),
    ("clock", clock(boot_id=""), "no boot id", "slewed"),
    ("clock", clock(store_boot_id="other", store_machine_id="other"), "on another machine", "relet adopt"),
    ("clock", clock(store_boot_id="other", store_machine_id="", machine_id=""), "another machine", "relet adopt"),
    ("clock", clock(store_time_namespace="2"), "another time namespace", "same time namespace"),
    ("state-folder", state(exists=False), "/state, where the marks of tokens are kept, is gone", "RELET_STATE_DIR"),
    ("state-folder", state(writable=False), "cannot be written", "writable"),
    ("state-folder", state(has_mark=False), "holds none of this store", "a folder that lasts"),
    ("lapsed", work(lapsed=Lapsed(**HELD, expired_ms_ago=40_000)), "expired 40 s ago", "relet sweep"),
    ("heartbeats", work(quiet=Quiet(**HELD, left_ms=19_000)), "A has 19 s left of a ttl of 60 s", "relet show t-1"),
    (
        "settings", work(queues=[QueueKnobs(name="q", paused=False, ttl_ms=60_000, max_hold_ms=59_999)]),
        "has max_hold 60 s", "max_hold=",
    ),
    ("settings", work(recent=[with_(CLAIMS, last_ttl_ms=limits.DOCTOR_TTL_MS - 1)]), "granted for 2", "advise q"),
    ("losses", work(recent=[with_(CLAIMS, lapsed=10)]), "10 of the last 100 leases of kind k", "relet advise q"),
    ("losses", work(recent=[with_(CLAIMS, count=5, lapsed=5)]), "5 of the last 5", "relet advise q"),
    ("repeats", work(repeated=REPEATED), "given back at once 12 times in the last 5 min", "relet history 'a task'"),
    ("claims", work(recent=[]), "nobody has claimed anything of that queue since", "worker MODULE:APP --queues q"),
    ("claims", work(recent=[OTHER]), "workers took other from it", "relet cancel 'a task'"),
    ("claims", work(recent=[OTHER], busy=[("q", "other")]), "they have no handler", '@app.task("k", queue="q")'),
    (
        "claims", work(recent=[with_(OTHER, last_seq=1, last_wall_ms=NOW)], ready=[OLDER], wall_ms=NOW + PATIENCE),
        "have ended since", "start a worker that has it",
    ),
    (
        "claims", work(recent=[], queues=[with_(QUEUE, apart_ms=600_000)], ready=[OLDER]), "nobody has claimed",
        "worker MODULE:APP --queues q",
    ),
    ("claims", work(recent=[with_(CLAIMS, last_wall_ms=LONG_AGO - 1)]), "in queue q, a task for 5 min", "worker"),
    ("effects", work(unknown_effects=AGED), "nobody knows for 2 h whether effect e-1", "relet show t-1"),
    (
        "dead-letters", work(dead=[DeadLetters(queue="q", code="RELET-INPUT", count=3, task_id="t-1")]),
        "3 task(s) of queue q failed for good with RELET-INPUT", "relet requeue --all --queue q",
    ),
    (
        "dead-letters", work(dead=[DeadLetters(queue="q", code=None, count=3, task_id="t-1")]),
        "failed for good, t-1 among them", "relet show t-1",
    ),
    ("questions", work(stalled=AGED), "question e-1 of task t-1 has been open for 2 h", "relet waits"),
    ("timeouts", work(unanswered=AGED), "was over 2 h ago", "relet sweep"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "facts", "evidence", "fix"), AMISS, ids=lambda value: value if value == "" else None
)
def test_what_is_amiss_is_found_with_its_evidence_and_its_fix(check, facts, evidence, fix):
    report = examine("here", facts)
    (finding,) = [one for one in report.findings if one.check == check]
    assert evidence in finding.evidence
    assert fix in finding.fix
    assert [one.ok for one in report.checks if one.check == check] == [False]
    assert {one.check for one in report.findings} == {check}, "and nothing else"


def test_every_check_finds_something_in_the_table_above():
    assert {check for check, *_ in AMISS} == {check.name for check in CHECKS}


def test_where_all_is_well_every_check_says_what_it_saw():
    report = examine("here", WELL)
    assert (report.place, report.findings) == ("here", [])
    assert [one.check for one in report.checks] == [check.name for check in CHECKS]
    assert all(one.ok and one.seen for one in report.checks)


WELL_TOO = {
    "one tenant of several that was asked for alone": with_(WELL, alone=True, others=["other"]),
    "a store in memory": place(file=None, state=None),
    "a platform that tells of no processes": place(processes=None),
    "one engine in each process": place(processes=[ProcessFacts(pid=7, command="app", engines=1)]),
    "a file that cannot be looked into": file(journal_mode=None, synchronous=None, schema=None, free_bytes=None),
    "a newer schema that can be read": file(schema=8),
    "a file that was not opened yet": with_(WELL, work=[]),
    "another boot of the same machine": clock(store_boot_id="before"),
    "a store that does not exist yet": clock(store_boot_id=None, store_time_namespace=None),
    "a state folder that is made when it is needed": state(exists=False, store_id=None),
    "few losses": work(recent=[with_(CLAIMS, count=1, lapsed=1)]),
    "a paused queue": work(recent=[], queues=[QueueKnobs(name="q", paused=True, ttl_ms=5, max_hold_ms=None)]),
    "a cap that is longer than the ttl": work(queues=[QueueKnobs(name="q", paused=False, ttl_ms=5, max_hold_ms=5)]),
    "tasks that are ready for a moment": work(recent=[], ready=[with_(READY, ready_wall_ms=LONG_AGO + 1)]),
    "a queue that its rate or its limit holds back": work(recent=[], queues=[with_(QUEUE, held_back="rate")]),
    "a queue whose rate let the next one through a moment ago": work(
        recent=[with_(CLAIMS, last_wall_ms=LONG_AGO - 1)],
        queues=[with_(QUEUE, apart_ms=60_000)],
    ),
    "a task whose turn comes after that of others": work(recent=[with_(OTHER, last_seq=4)], ready=[OLDER]),
    "a task behind others of a higher priority": work(recent=[with_(OTHER, last_priority=1)], ready=[OLDER]),
    "a task that another one was taken before in the line of another share": work(
        recent=[with_(OTHER, last_share="s")]
    ),
    "a task that was not in line when others were taken": work(recent=[OTHER], ready=[with_(READY, in_line=False)]),
    "workers that are all busy with what came before": work(
        recent=[with_(OTHER, last_seq=4, last_wall_ms=LONG_AGO)],
        ready=[OLDER],
        busy=[("q", "other")],
    ),
    "a worker that is busy with the kind": work(recent=[], busy=[("q", "k")]),
    "a kind that was claimed since": work(recent=[with_(CLAIMS, last_wall_ms=LONG_AGO)]),
}


@pytest.mark.parametrize("facts", WELL_TOO.values(), ids=WELL_TOO)
def test_what_is_not_amiss_is_not_found(facts):
    assert found(facts) == set()


ACME = with_(WORK, tenant="acme corp", lapsed=Lapsed(**HELD, expired_ms_ago=40_000), unknown_effects=AGED)


def test_the_work_of_every_tenant_is_examined_and_each_finding_says_whose_it_is():
    report = examine("here", with_(WELL, work=[ACME, WORK]))
    assert [(one.check, one.tenant) for one in report.findings] == [("lapsed", "acme corp"), ("effects", "acme corp")]
    assert report.findings[0].evidence.startswith("tenant acme corp: the lease of task t-1")
    assert report.findings[1].fix.endswith("relet show t-1 --tenant 'acme corp'")
    seen = [(one.tenant, one.ok) for one in report.checks if one.check == "lapsed"]
    assert seen == [("acme corp", False), ("default", True)]
    assert next(one.seen for one in report.checks if one.check == "tenants") == "2 looked at: acme corp, default"


def test_commands_of_the_tenant_that_is_set_name_none():
    report = examine("here", with_(WELL, work=[ACME], tenant="acme corp"))
    assert (report.findings[0].evidence[:9], report.findings[1].fix[-14:]) == ("the lease", "relet show t-1")


def test_tenants_that_were_not_looked_at_are_named():
    others = [f"t{n}" for n in range(25)]
    (seen,) = [one for one in examine("", with_(WELL, alone=True, others=others)).checks if one.check == "tenants"]
    assert seen.seen.startswith("1 looked at: default; not looked at: t0, t1, ")
    assert seen.seen.endswith(", t19 and 5 more")


def test_the_size_of_the_log_names_who_has_it_open():
    holder = ProcessFacts(pid=7, command="sqlite3", engines=1)
    (finding,) = examine("here", with_(WELL, place=with_(
        PLACE, file=with_(FILE, wal_bytes=1 << 30), processes=[holder],
    ))).findings  # fmt: skip
    assert finding.evidence.endswith("it is open in 7 (sqlite3)")
    assert finding.detail == {"wal_bytes": 1 << 30}


def test_who_has_it_open_is_named_where_all_is_well_and_where_it_cannot_be_opened():
    openers = [ProcessFacts(pid=pid, command="app", engines=1) for pid in (7, 8)]
    seen = {one.check: one.seen for one in examine("", place(processes=openers)).checks}
    assert seen["one-engine"] == "2 have it open: 7 (app), 8 (app)"
    (finding,) = examine("", with_(place(processes=openers), refused="it is locked", work=[])).findings
    assert (finding.evidence, finding.detail) == ("it is locked; it is open in 7 (app), 8 (app)", {"pids": [7, 8]})


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0, "0 ms"), (999, "999 ms"), (1_000, "1 s"), (119_000, "119 s"), (120_000, "2 min"), (172_800_000, "2 d")],
)
def test_spans_are_said_in_the_unit_that_people_use(ms, said):
    assert duration(ms) == said


@pytest.mark.parametrize(("count", "said"), [(3, "3 bytes"), (2_048, "2.0 KiB"), (64 << 20, "64.0 MiB")])
def test_sizes_are_said_in_the_unit_that_people_use(count, said):
    assert size(count) == said
