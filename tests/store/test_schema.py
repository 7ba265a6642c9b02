"""The schema: made in a fresh file, refused where it is older or newer, and newer even under an open client."""

import apsw
import msgspec
import pytest

from relet.core.catalog import BY_REQUEST, OPERATIONS
from relet.core.errors import Unavailable, UpgradeRequired
from relet.core.rules.attach import Attach
from relet.core.rules.cancel import Cancel, CancelMany
from relet.core.rules.check import Check
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.decide import Decide
from relet.core.rules.end_effect import EndEffect
from relet.core.rules.fail import Fail
from relet.core.rules.inspect import Look
from relet.core.rules.park import Park
from relet.core.rules.progress import Progress
from relet.core.rules.prune import Prune
from relet.core.rules.reconcile import Reconcile
from relet.core.rules.release import Release
from relet.core.rules.renew import Renew
from relet.core.rules.requeue import Requeue, RequeueMany
from relet.core.rules.save import Save
from relet.core.rules.set_queue import SetQueue
from relet.core.rules.signal import Signal
from relet.core.rules.start_effect import StartEffect
from relet.core.rules.step import KeepStep
from relet.core.rules.submit import NewTask, Submit
from relet.core.rules.sweep import Sweep
from relet.core.tx import TaskFilter
from relet.core.work import Contract, ContractKind, DecisionKind, Outcome, WaitKind
from relet.store import migrate
from relet.store.migrate import MIN_READER, MIN_WRITER, SCHEMA, migrations
from relet.store.sqlite.connect import APPLICATION_ID
from relet.testing import Clock
from tests.store.inside import ask, contents, path_of

RAW = msgspec.Raw(b"1")
OPAQUE = Contract(kind=ContractKind.OPAQUE)


def write(folder, sql):
    connection = apsw.Connection(str(path_of(folder)), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute(sql)
    connection.close()


def test_a_fresh_file_has_the_newest_schema_and_the_mark_of_a_store(db, tmp_path):
    assert ask(tmp_path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert ask(tmp_path, "PRAGMA user_version") == [(SCHEMA,)]
    assert ask(tmp_path, "PRAGMA journal_mode") == [("wal",)]
    assert ask(tmp_path, "SELECT min_reader, min_writer, epoch, n, mark FROM meta") == [
        (MIN_READER, MIN_WRITER, 0, 0, 0)
    ]
    assert ask(tmp_path, "PRAGMA integrity_check") == [("ok",)]


def test_opening_it_again_makes_nothing_new(connect, clock, tmp_path):
    connect(clock).submit("q", 1, id="t")
    before = ask(tmp_path, "SELECT * FROM meta"), contents(tmp_path)
    connect(clock).close()
    assert (ask(tmp_path, "SELECT * FROM meta"), contents(tmp_path)) == before


def test_an_empty_file_becomes_a_store(connect, clock, tmp_path):
    path_of(tmp_path).touch()
    assert connect(clock).submit("q", 1).created


def test_migrations_lead_from_one_to_the_newest_without_a_gap():
    assert [step.number for step in migrations("relet.store.sqlite", SCHEMA)] == list(range(1, SCHEMA + 1))
    with pytest.raises(LookupError, match=f"do not lead to {SCHEMA + 1}"):
        migrations("relet.store.sqlite", SCHEMA + 1)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE meta SET min_reader = 99", "asks for readers of 99 or newer"),
        ("PRAGMA user_version = 0", r"has schema 0, this relet needs \d+; nothing was changed. .* relet migrate"),
    ],
    ids=["newer", "older"],
)
def test_a_store_of_another_time_is_refused_and_left_as_it_is(connect, clock, tmp_path, change, problem):
    connect(clock).close()
    write(tmp_path, change)
    before = path_of(tmp_path).read_bytes()
    with pytest.raises(UpgradeRequired, match=problem) as refused:
        connect(clock)
    assert (refused.value.code, refused.value.detail["schema"]) == ("RELET-UPGRADE", SCHEMA)
    assert path_of(tmp_path).read_bytes() == before


def test_a_newer_schema_that_still_lets_us_read_is_opened(connect, clock, tmp_path):
    connect(clock).submit("q", 1, id="t")
    write(tmp_path, "PRAGMA user_version = 99")
    assert connect(clock).task("t").id == "t"


def test_a_relet_of_the_first_schema_goes_on_reading_and_writing(connect, clock, monkeypatch):
    connect(clock).submit("q", 1, id="t")
    monkeypatch.setattr(migrate, "SCHEMA", MIN_WRITER)
    monkeypatch.setattr("relet.store.sqlite.runner.SCHEMA", MIN_WRITER)
    old = connect(clock)
    lease = old.claim("q")
    lease.renew()
    lease.complete(2)
    assert old.result("t") == 2


WRITES = {
    "submit": lambda _: Submit(queue="q", kind="q", tasks=[NewTask(id="new", input=RAW)]),
    "claim": lambda _: Claim(holder="A", queues=["q"]),
    "renew": lambda handle: Renew(handles=[handle]),
    "save": lambda handle: Save(handle=handle, name="main", value=RAW),
    "complete": lambda handle: Complete(completions=[Completion(handle=handle, result=RAW)]),
    "fail": lambda handle: Fail(handle=handle, error="no"),
    "release": lambda handle: Release(handle=handle),
    "cancel": lambda _: Cancel(task_id="ready", reason=""),
    "cancel_many": lambda _: CancelMany(which=TaskFilter(), reason=""),
    "requeue": lambda _: Requeue(task_id="dead"),
    "requeue_many": lambda _: RequeueMany(which=TaskFilter()),
    "sweep": lambda _: Sweep(),
    "prune": lambda _: Prune(older_ms=60_000),
    "set_queue": lambda _: SetQueue(name="q", paused=True),
    "check": lambda handle: Check(handle=handle),
    "keep_step": lambda handle: KeepStep(handle=handle, name="s", slot="#1", value=RAW),
    "attach": lambda handle: Attach(handle=handle, name="a", uri="artifact:aa", sha256="aa", size=1),
    "progress": lambda handle: Progress(handle=handle, note="here"),
    "start_effect": lambda handle: StartEffect(
        handle=handle, name="e", payload=RAW, contract=OPAQUE, timeout_ms=1, call_id="c"
    ),
    "end_effect": lambda handle: EndEffect(handle=handle, effect_id="e-1", attempt=1, outcome=Outcome.APPLIED),
    "park": lambda handle: Park(handle=handle, name="w", kind=WaitKind.SIGNAL, ask=RAW),
    "decide": lambda _: Decide(task_id="ready", name="w", kind=DecisionKind.DENY, by="ann", value=RAW),
    "signal": lambda _: Signal(task_id="ready", name="w", call_id="c", payload=RAW),
    "reconcile": lambda _: Reconcile(effect_id="e-1", outcome=Outcome.APPLIED, by="ann"),
}


@pytest.fixture
def overtaken(db, tmp_path):
    """A store that was migrated under its open client; answers the handle of a live lease."""
    for name in ("held", "ready", "dead"):
        db.submit("q", name, id=name)
    db.cancel("dead")
    handle = db.claim(task_id="held").belief.grant.handle
    write(tmp_path, f"UPDATE meta SET min_writer = {SCHEMA + 1}")
    return handle


def test_every_operation_that_writes_is_tried_below():
    assert set(WRITES) == {operation.name for operation in OPERATIONS if operation.writes}


@pytest.mark.case("CK-09")
@pytest.mark.parametrize("name", WRITES)
def test_every_write_under_a_store_that_was_migrated_is_refused(db, overtaken, tmp_path, name):
    request = WRITES[name](overtaken)
    assert BY_REQUEST[type(request)].name == name
    before = contents(tmp_path)
    with pytest.raises(
        UpgradeRequired, match=f"takes writers of schema {SCHEMA + 1} or newer, this one has {SCHEMA}"
    ):
        db.backend.call(request)
    assert contents(tmp_path) == before


def test_reads_go_on_under_a_store_that_was_migrated(db, overtaken):
    assert db.task("held").live
    assert [task.id for task in db.tasks()] == ["held", "ready", "dead"]
    assert db.backend.call(Look(handle=overtaken)).lost is None


def test_a_reboot_is_not_written_into_a_store_that_takes_newer_writers_only(connect, overtaken, tmp_path):
    before = ask(tmp_path, "SELECT * FROM meta"), contents(tmp_path)
    with pytest.raises(UpgradeRequired, match="Nothing was written"):
        connect(Clock(boot="next"))
    assert (ask(tmp_path, "SELECT * FROM meta"), contents(tmp_path)) == before


def test_a_client_of_a_store_that_was_deleted_says_so(db, tmp_path):
    db.submit("q", 1)
    for lane in db.backend.store._lanes():
        lane.disconnect()
    path_of(tmp_path).unlink()
    with pytest.raises(Unavailable, match="was replaced or removed") as gone:
        db.submit("q", 2)
    assert gone.value.code == "RELET-REPLACED"


def test_a_client_that_was_closed_says_so(db):
    db.close()
    for verb in (lambda: db.submit("q", 1), db.tasks, lambda: db.backend.wait_for_change(0)):
        with pytest.raises(Unavailable, match="this client is closed") as closed:
            verb()
        assert closed.value.code == "RELET-CLOSED"
    db.close()  # a second time, in peace


def test_a_step_only_adds_so_that_a_relet_of_the_oldest_schema_goes_on_beside_it():
    """Its positional inserts, its stars and its INDEXED BY stay what they were."""
    first, later = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    for step in migrations("relet.store.sqlite", SCHEMA):
        if step.number <= MIN_WRITER:
            first.execute(step.text)
        later.execute(step.text)

    def read(connection, what):
        return dict(connection.execute(f"SELECT name, sql FROM sqlite_schema WHERE {what}").fetchall())

    for what in (
        "type = 'index' AND sql IS NOT NULL",
        "type = 'trigger'",
        "type = 'table' AND name NOT IN ('queues', 'totals')",
    ):
        assert read(first, what).items() <= read(later, what).items()
    for table in ("queues", "totals"):  # whose columns its writers name
        columns = f"SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('{table}')"
        old, new = first.execute(columns).fetchall(), later.execute(columns).fetchall()
        assert new[: len(old)] == old
        assert all(not notnull or default is not None for _, _, notnull, default, _ in new[len(old) :])
