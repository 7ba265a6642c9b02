"""Everything that holds a lease is stopped for three ttls, and woken: whatever it sends then, nothing of it lands."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from relet.core.catalog import OPERATIONS
from relet.fences.files import FileFence
from relet.fences.sqlite import SqliteFence
from tests.processes.freezing import freeze, freeze_pid, is_stopped, thaw
from tests.processes.program import gone
from tests.processes.whole import ask, is_whole, rows
from tests.waiting import eventually

PROGRAMS = Path(__file__).parents[1] / "processes" / "programs"
HOLDER = PROGRAMS / "stopped_worker.py"
EXEC = Path(__file__).parents[1] / "worker" / "programs" / "exec_program.py"
TTL_S = 1.0
VERBS = {
    "renew": "renew", "save": "save", "step": "keep_step", "progress": "progress", "effect start": "start_effect",
    "effect end": "end_effect", "attach": "attach", "child": "submit", "complete": "complete", "fail": "fail",
    "release": "release", "park": "park", "check": "check",
}  # fmt: skip
TARGETS = ("transaction", "fence in SQLite", "fence of files")
KINDS = (*VERBS, *TARGETS)
APART = ("save", "step", "effect start", "complete", "transaction", "fence in SQLite", "fence of files")
BY_EXEC = ("save", "complete", "fence in SQLite")
ELSEWHERE = ("steps", "artifacts", "waits", "signals", "effects", "inputs")


def test_every_verb_of_a_holder_that_writes_is_tried_below():
    """Those that carry a handle; a claim only looks at one, to pass over a delay."""
    proofs = {"handle", "handles", "completions", "under"}
    holders = {
        operation.name
        for operation in OPERATIONS
        if operation.writes and proofs & set(operation.request.__struct_fields__) and operation.name != "claim"
    }
    assert holders == set(VERBS.values())


class Targets:
    """A table of the user's in the store, a database and a folder behind fences; each write that lands is there."""

    def __init__(self, db, folder):
        self._db, self._folder = db, folder
        with closing(apsw.Connection(db.place)) as connection:
            connection.execute("CREATE TABLE mine (x)")
        self._fenced = apsw.Connection(str(folder / "fenced.db"))
        self._fenced.execute("CREATE TABLE landed (x)")
        (folder / "files").mkdir()

    def take(self, lease):
        """The first act of a new holder."""
        with SqliteFence(self._fenced).write(lease.task_id, lease.token) as connection:
            connection.execute("INSERT INTO landed VALUES ('new')")
        with FileFence(self._folder / "files").write(lease.task_id, lease.token) as file:
            file.write(b"new")

    def landed(self):
        found = Counter(x for (x,) in self._fenced.execute("SELECT x FROM landed"))
        found += Counter(f"{x} in a transaction" for (x,) in ask(self._db, "SELECT x FROM mine"))
        files = [path for path in (self._folder / "files").rglob("*") if path.is_file()]
        found += Counter("new in a file" for path in files if path.read_bytes() == b"new")
        found += Counter("late in a file" for path in files if b"late" in path.read_bytes())
        return found


def children_of(program):
    """The processes that it started, by their ids, and what each of them runs."""
    told = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(program.pid)], capture_output=True, text=True, check=True
    )
    return {int(line.split()[0]): line for line in told.stdout.splitlines()}


def those_that_run(children, program):
    return [pid for pid, line in children.items() if program in line]


def everything(db):
    return rows(db) | {table: ask(db, f"SELECT * FROM {table}") for table in ELSEWHERE}


class Stopped:
    """A worker with its heartbeat process, its children and their warden, and programs under `relet exec`."""

    def __init__(self, db, start, url, folder):
        self._db, self._folder = db, folder
        self.kinds = {
            db.submit(where, {"kind": kind}, kind=where).id: kind
            for where, kinds in {"late": KINDS, "beside": KINDS, "apart": APART}.items()
            for kind in kinds
        }
        self.by_exec = {db.submit(f"exec {kind}", {"kind": kind}).id: kind for kind in BY_EXEC}
        environment = {"STOPPED_IN": str(folder)}
        self.worker = start(HOLDER, url, environment=environment)
        held = [self.worker.value() for _ in self.kinds]
        assert Counter(kind for kind, _, _ in held) == Counter(self.kinds.values())
        options = json.dumps({"grace": "0.2s", "ttl": TTL_S})
        run = "import sys, runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        command = [sys.executable, "-c", run]
        self.execs = [
            start(EXEC, url, f"exec {kind}", options, *command, HOLDER, url, environment=environment)
            for kind in BY_EXEC
        ]
        for one in self.execs:
            assert one.value()[0] == "exec"

    def freeze(self):
        """All of it stands still when this returns."""
        self._children = children_of(self.worker)
        self._apart = those_that_run(self._children, "relet.worker.apart")
        assert len(self._apart) == len(APART)
        assert len(those_that_run(self._children, "relet.beating")) == 1
        self._of_execs = [those_that_run(children_of(one), HOLDER.name) for one in self.execs]
        for child in (*self._apart, *[child for (child,) in self._of_execs]):
            os.kill(child, signal.SIGSTOP)
        for program in (self.worker, *self.execs):
            freeze(program, self._db)
        for child in self._children.keys() - set(self._apart):
            freeze_pid(child, self._db)
        assert all(is_stopped(child) for child in self._children)

    def wake(self):
        """All of it goes on, children first; what each late write came to."""
        (self._folder / "go").touch()
        told = []
        for child in self._children:
            os.kill(child, signal.SIGCONT)
        told += [self.worker.value() for _ in APART]
        for (child,), program in zip(self._of_execs, self.execs, strict=True):
            os.kill(child, signal.SIGCONT)
            told.append(program.value())
        thaw(self.worker)
        told += [self.worker.value() for _ in range(len(self.kinds) - len(APART))]
        for (child,), program in zip(self._of_execs, self.execs, strict=True):
            thaw(program)
            assert program.wait() == 5
            assert gone(child)
        return told

    def end(self):
        """The worker ends; of its children, which may have been done before they were to be killed, none is left."""
        self.worker.send(signal.SIGTERM)
        self.worker.wait()
        assert all(gone(child) for child in self._apart)


@pytest.mark.faults
def test_ec_10_of_all_that_is_sent_after_three_ttls_of_standing_still_nothing_lands(db, start, url, tmp_path):
    targets = Targets(db, tmp_path)
    stopped = Stopped(db, start, url, tmp_path)
    stopped.freeze()
    since = time.monotonic()

    successors = {}
    for task_id in (*stopped.kinds, *stopped.by_exec):
        successors[task_id] = eventually(lambda task_id=task_id: db.claim(task_id=task_id, holder="new", ttl="60s"))
        successors[task_id].save("new")
        targets.take(successors[task_id])
    time.sleep(max(0, since + 3 * TTL_S - time.monotonic()))
    before, landed = everything(db), targets.landed()
    told = stopped.wake()

    assert Counter(kind for kind, _, _ in told) == Counter([*stopped.kinds.values(), *BY_EXEC])
    assert {said for _, _, said in told} <= {"LeaseLost superseded", "StaleToken superseded"}, told
    assert everything(db) == before
    assert targets.landed() == landed
    assert not any("late" in where for where in landed)
    assert not (tmp_path / "called").exists()
    effects = db.effects()
    assert len(effects) == list(stopped.kinds.values()).count("effect end")
    for effect in effects:
        assert (effect.state, [one.receipt for one in effect.evidence]) == ("unknown", [7]), "said, and moved nothing"
    refused = Counter(one.verb for one in db.rejections(limit=1_000))
    assert set(refused) >= set(VERBS.values())
    for task_id, lease in successors.items():
        if stopped.kinds.get(task_id) != "effect end":
            lease.complete("new")
            assert db.result(task_id) == "new"
    assert is_whole(db)
    stopped.end()
