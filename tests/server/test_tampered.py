"""Rubbish put into the store by hand, column by column: reading it runs nothing, and is told as what it is (P16)."""

import os
import pickle
import sys
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import apsw
import pytest

from relet.core.errors import Error
from relet.core.payload import decode
from relet.core.problem import STATUS_OF_CODE, STATUS_OF_FAMILY
from relet.core.rules.advise import Advise
from relet.core.rules.check import Check
from relet.core.rules.claim import Claim
from relet.core.rules.condition import AskCondition
from relet.core.rules.glance import Glance
from relet.core.rules.inspect import Changes, CountTasks, FindTask, History, ListTasks, Look, Rejections
from relet.core.rules.inspect_work import Artifacts, Checkpoints, Effects, Referenced, Steps, Waits
from relet.core.rules.memo import Attached, Memo, ReadStep
from relet.core.rules.queues import Queues
from relet.core.rules.save import Load
from relet.core.rules.set_queue import SetQueue
from relet.core.rules.submit import NewTask, Submit
from relet.core.tx import TaskFilter
from tests.folders import quick_folder
from tests.server.served import Served
from tests.server.world import World, raw
from tests.store.inside import path_of

pytestmark = pytest.mark.slow
CANARY = "relet_canary"
RUNS = {
    "pickle.find_class", "marshal.loads", "exec", "compile", "import", "os.system", "os.exec", "os.posix_spawn",
    "subprocess.Popen",
}  # fmt: skip
"""What the interpreter tells of when data becomes code, a class or a program."""
STATUSES = {*STATUS_OF_CODE.values(), *STATUS_OF_FAMILY.values()}


class Bomb:
    def __reduce__(self):
        return os.system, (f"touch {CANARY}",)


RUBBISH = {
    "a pickle": pickle.dumps(Bomb()),
    "a pickle as text": pickle.dumps(Bomb(), 0).decode(),
    "a reduction": f'{{"__reduce__":["os.system",["touch {CANARY}"]]}}',
    "a constructor": f'{{"lc":2,"type":"constructor","id":["{CANARY}","Run"],"kwargs":{{"cmd":"touch {CANARY}"}}}}',
    "a YAML object": f'!!python/object/apply:os.system ["touch {CANARY}"]',
    "a msgpack extension": b"\xc7\x06\x05relet!",
    "a lone surrogate": '"\\ud800"',
    "half a surrogate's bytes": b'"\xed\xa0\x80"',
    "half of JSON": '{"a":',
    "deep JSON": "[" * 20_000 + "]" * 20_000,
    "a module": CANARY,
    "no text": "",
    "bytes": b"\x00\xff",
    "a fraction": 0.5,
    "a huge number": (1 << 63) - 1,
    "a huge negative number": -(1 << 63),
    "a number beyond any": 1e308,
    "nothing": None,
}


class Watching:
    """What the interpreter did while it was asked to look. A hook stays for good, so there is one."""

    def __init__(self):
        self.is_on, self.seen = False, []
        sys.addaudithook(self._hear)

    def _hear(self, event, args):
        # Where a traceback is put into words, its lines are parsed; nothing is made of them.
        if self.is_on and event in RUNS and (event, args[1:]) != ("compile", ("<unknown>",)):
            self.seen.append((event, str(args)[:200]))

    @contextmanager
    def on(self):
        self.seen.clear()
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False


@pytest.fixture(scope="module")
def watching():
    return Watching()


def readings(world):
    """Everything that can be asked without changing what there is."""
    held = world.held
    for name in ("held", "asking", "done", "ready"):
        task_id = world.id(name)
        yield from (
            FindTask(task_id=task_id), History(task_id=task_id), Changes(after=0, task_id=task_id),
            Steps(task_id=task_id), Checkpoints(task_id=task_id), Artifacts(task_id=task_id), Waits(task_id=task_id),
            Effects(task_id=task_id), Rejections(task_id=task_id),
        )  # fmt: skip
    yield from (
        ListTasks(which=TaskFilter()), ListTasks(which=TaskFilter(queue=world.queue, labels={"a": "b"})),
        Changes(after=0), Look(handle=held), Check(handle=held), Load(handle=held, name="main"), Memo(handle=held),
        ReadStep(handle=held, name="s", slot="#1"), Attached(handle=held, name="page.png"), Waits(), Effects(),
        Referenced(digests=[world.digest]), Advise(), CountTasks(), AskCondition(), Queues(), Rejections(),
        Glance(queues=[world.queue]),
    )  # fmt: skip


def looks(db, world):
    """The same, in the words of the client."""
    for name in ("held", "asking", "done", "ready"):
        task_id = world.id(name)
        for verb in (db.task, db.history, db.steps, db.checkpoints, db.artifacts):
            yield partial(verb, task_id)
    yield from (db.tasks, db.effects, db.queues, db.stats, db.rejections, db.advise)
    yield partial(db.result, world.id("done"))


def open_file(served):
    """A connection that nothing holds back but the types of columns: no check, no trigger, no reference."""
    file = apsw.Connection(str(path_of(served.folder)), flags=apsw.SQLITE_OPEN_READWRITE)
    file.set_busy_timeout(5_000)
    file.pragma("ignore_check_constraints", True)
    file.pragma("foreign_keys", False)
    return closing(file)


def columns(file):
    """Of every table that there is."""
    tables = file.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return {t: [row[1] for row in file.execute(f"PRAGMA table_info({t})")] for (t,) in tables.fetchall()}


TABLES = (
    "api_audit", "api_audit_end", "api_keys", "artifacts", "checkpoints", "effects", "events", "evidence", "holders",
    "inputs", "late_beats", "leases", "places", "queues", "rejection_counts", "rejections", "signals", "steps",
    "tasks", "tombstones", "totals", "waits",
)  # fmt: skip
STORES_OWN = {"meta"}
"""Of no task: who changes it has changed the store, which is told when it is opened."""


@contextmanager
def tampered(file, table, column, value):
    """A column of all rows of a table holds the value for a while; False where SQLite itself does not take it."""
    rows = file.execute(f"SELECT * FROM {table}").fetchall()
    if not rows:
        yield False
        return
    try:
        file.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))
    except (apsw.ConstraintError, apsw.MismatchError):
        yield False
        return
    try:
        yield True
    finally:
        file.execute(f"DELETE FROM {table}")
        file.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)


@pytest.fixture(scope="module")
def stage():
    """A service whose store has a row of every table, asked for all once so that nothing is loaded later."""
    with quick_folder() as folder:
        served = Served(Path(folder))
        world, other = World(served, "a"), World(served, "a", queue="other")
        key = served.key()
        world.ask(SetQueue(name=world.queue, concurrency=5))
        with open_file(served) as file:
            for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                file.execute(f'DROP TRIGGER "{name}"')
            yield served, world, other, key, file
        served.close()


def read_all(served, world, key):
    """Ask for everything; what was met that is no answer and no error of relet's, in words."""
    for ask in readings(world):
        # A key that is tampered with is a wrong one each time, and each of these is to be answered from the store.
        served.app_forgets_failures()
        try:
            reply = served.call(ask, key)
        except Exception as wrong:  # after the answer was given, which tells nothing of it: for the log
            yield f"{type(ask).__name__}: {type(wrong).__name__}"
            continue
        if reply.status != 200:
            assert reply.is_problem and reply.status in STATUSES, (ask, reply)
            assert "Traceback" not in reply.json["detail"] and "touch" not in reply.json["detail"], reply.json
    for look in looks(served.db, world):
        try:
            look()
        except Error:
            continue
        except Exception as wrong:
            yield f"{look}: {type(wrong).__name__}"


def test_every_table_is_tampered_with(stage):
    *_, file = stage
    assert {*TABLES} == {*columns(file)} - STORES_OWN


@pytest.mark.parametrize("table", TABLES)
def test_what_somebody_put_into_a_column_runs_nothing_and_is_told_as_what_it_is(stage, watching, table):
    served, world, _, key, file = stage
    assert list(read_all(served, world, key)) == []
    for column in columns(file)[table]:
        for what, value in RUBBISH.items():
            with tampered(file, table, column, value) as took, watching.on():
                if took:
                    assert list(read_all(served, world, key)) == [], (table, column, what)
            assert watching.seen == [], (table, column, what)
    assert not os.path.lexists(CANARY)


def test_what_is_no_json_is_given_to_no_other_loader(watching):
    with watching.on():
        for value in RUBBISH.values():
            with suppress(Error, TypeError):
                decode(value)
    assert watching.seen == []


@pytest.mark.parametrize("what", RUBBISH)
def test_one_tampered_task_stands_in_nobodys_way(stage, what):
    served, world, other, key, file = stage
    served.app_forgets_failures()
    for column in ("labels", "error", "progress", "code", "reason", "result"):
        with suppress(apsw.ConstraintError, apsw.MismatchError):
            file.execute(f"UPDATE tasks SET {column} = ? WHERE id = ?", (RUBBISH[what], world.id("done")))
        assert served.call(FindTask(task_id=other.id("held")), key).status == 200
        assert served.call(Check(handle=other.held), key).status == 200
        task_id = f"fresh-{what}-{column}"
        other.ask(Submit(queue="fresh", kind="k", tasks=[NewTask(id=task_id, input=raw(1))]))
        (grant,) = other.ask(Claim(holder="A", queues=["fresh"]))
        assert grant.handle.task_id == task_id
        file.execute(f"UPDATE tasks SET {column} = NULL WHERE id = ?", (world.id("done"),))
