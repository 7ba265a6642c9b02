"""Everything that holds a lease is stopped for three ttls, and woken: whatever it sends then, nothing of it lands."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from relet.core.catalog import OPERATIONS
from relet.fences.files import FileFence
from relet.fences.sqlite import SqliteFence
from tests.processes.freezing import freeze, thaw
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


def child_of(program):
    told = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(program.pid)], capture_output=True, text=True, check=True
    )
    return int(told.stdout.split()[0])


def everything(db):
    return rows(db) | {table: ask(db, f"SELECT * FROM {table}") for table in ELSEWHERE}


@pytest.mark.faults
def test_ec_10_of_all_that_is_sent_after_three_ttls_of_standing_still_nothing_lands(db, start, url, tmp_path):
    targets = Targets(db, tmp_path)
    tasks = {db.submit("work", {"kind": kind}, kind="late").id: kind for kind in KINDS}
    by_exec = {db.submit(f"exec {kind}", {"kind": kind}).id: kind for kind in BY_EXEC}
    worker = start(HOLDER, url, tmp_path, "work")
    held = [worker.value() for _ in KINDS]
    assert sorted(kind for kind, _, said in held) == sorted(KINDS)
    execs = {}
    for kind in BY_EXEC:
        program = "import sys, runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        execs[kind] = start(
            EXEC, url, f"exec {kind}", json.dumps({"grace": "0.2s", "ttl": TTL_S}),
            os.sys.executable, "-c", program, HOLDER, url, tmp_path, "none",
        )  # fmt: skip
        assert execs[kind].value()[0] == "exec"
    children = {kind: child_of(program) for kind, program in execs.items()}
    for child in children.values():
        os.kill(child, signal.SIGSTOP)
    for program in (worker, *execs.values()):
        freeze(program, db)
    stopped = time.monotonic()

    successors = {}
    for task_id in (*tasks, *by_exec):
        successors[task_id] = eventually(lambda task_id=task_id: db.claim(task_id=task_id, holder="new", ttl="60s"))
        successors[task_id].save("new")
        targets.take(successors[task_id])
    time.sleep(max(0, stopped + 3 * TTL_S - time.monotonic()))
    before, landed = everything(db), targets.landed()
    (tmp_path / "go").touch()
    told = []
    for kind, child in children.items():
        os.kill(child, signal.SIGCONT)
        told.append(execs[kind].value())
    thaw(worker)
    told += [worker.value() for _ in KINDS]
    for kind, program in execs.items():
        thaw(program)
        assert program.wait() == 5
        assert gone(children[kind])

    assert Counter(kind for kind, _, _ in told) == Counter((*KINDS, *BY_EXEC))
    assert {said for _, _, said in told} <= {"LeaseLost superseded", "StaleToken superseded"}, told
    assert everything(db) == before
    assert targets.landed() == landed
    assert not any("late" in where for where in landed)
    assert not (tmp_path / "called").exists()
    (effect,) = db.effects()
    assert (effect.state, [one.receipt for one in effect.evidence]) == ("unknown", [7]), "said, and moved nothing"
    refused = Counter(one.verb for one in db.rejections(limit=1_000))
    assert set(refused) >= set(VERBS.values())
    for task_id, lease in successors.items():
        if tasks.get(task_id) != "effect end":
            lease.complete("new")
            assert db.result(task_id) == "new"
    assert is_whole(db)
