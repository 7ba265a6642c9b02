"""The children of a worker, seen from the worker's own process: each is stopped for its own lease, and no other."""

import os
import signal
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from relet.core.errors import LeaseLost
from relet.core.model import LostReason
from relet.worker.children import ApartRun, Children
from relet.worker.line import Finished, How, Moved
from relet.worker.warden import Warden
from tests.alive import is_gone
from tests.processes.apart_handlers import app, closes, dies, forks, gated, joins, misnamed, quiet
from tests.waiting import eventually


@pytest.fixture
def children(db):
    warden = Warden()
    found = Children(db, None, warden)
    yield found
    found.close()
    warden.close()


def lost(lease):
    return LeaseLost("too late", reason=LostReason.CANCELLED, token=lease.token)


def claimed(db, tmp_path, name):
    gate = tmp_path / name
    return db.claim(task_id=gated.submit(db, str(gate)).id), gate


@pytest.mark.slow
def test_a_task_that_is_cancelled_as_it_ends_costs_the_next_one_of_its_child_nothing(db, tmp_path):
    gates = [tmp_path / name for name in ("first", "second")]
    first, second = (gated.submit(db, str(gate)) for gate in gates)
    with app.worker(db, concurrency=1) as worker:
        eventually(lambda: gates[0].with_suffix(".begun").exists(), within=30)
        db.cancel(first.id, "no")
        gates[0].touch()
        eventually(lambda: gates[1].with_suffix(".begun").exists(), within=30)
        assert db.task(first.id).state == "cancelled"
        # As long as a child that was told to stop would have had.
        assert not threading.Event().wait(1.5)
        gates[1].touch()
        assert db.result(second.id, wait=30) == int(gates[1].with_suffix(".begun").read_text())
        worker.drain()
    assert (db.task(second.id).attempt, [event.kind for event in db.history(second.id)]) == (
        1,
        ["submitted", "claimed", "completed"],
    )


def test_a_run_that_is_over_stops_neither_its_idle_child_nor_the_next_run_there(db, children, tmp_path):
    child = children.take()
    (old, gate), (new, other) = (claimed(db, tmp_path, name) for name in ("old", "new"))
    run = ApartRun(old, child)
    gate.touch()
    child.run(gated, run)
    children.give_back(child)
    run.stop(lost(old))
    assert not child.spent and children.take() is child
    next_run = ApartRun(new, child)
    ending = []
    working = threading.Thread(target=lambda: ending.append(child.run(gated, next_run)))
    working.start()
    eventually(other.with_suffix(".begun").exists)
    ApartRun.stop(run, lost(old))
    old.belief.lose(lost(old))
    other.touch()
    working.join(30)
    assert not child.spent and next_run.stopped is None and ending[0].result


def test_a_run_that_is_stopped_before_it_begins_has_its_child_to_the_end(db, children, tmp_path):
    child = children.take()
    lease, _ = claimed(db, tmp_path, "stopped")
    run = ApartRun(lease, child)
    run.stop(lost(lease))
    assert child.run(gated, run).cause.reason == "cancelled"
    children.give_back(child)
    assert child.spent and children.take() is not child


def test_a_child_is_killed_at_once_where_no_thread_can_be_had_to_do_it_later(db, children, tmp_path, monkeypatch):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    child = children.take()
    lease, _ = claimed(db, tmp_path, "stopped")
    run = ApartRun(lease, child)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        run.stop(lost(lease))
    assert child.process.returncode == -signal.SIGKILL


def test_a_child_that_dies_ends_its_attempt_though_its_forks_live_on(db, tmp_path):
    said = tmp_path / "left"
    task = dies.submit(db, str(said))
    with app.worker(db, concurrency=1):
        eventually(lambda: db.task(task.id).state == "failed", within=30)
    assert "its process was ended by SIGKILL" in db.task(task.id).error
    within, without = (int(pid) for pid in said.read_text().split())
    try:
        eventually(lambda: is_gone(within))
        assert not is_gone(without)
    finally:
        os.kill(without, signal.SIGKILL)


@pytest.mark.parametrize("raises", [False, True])
def test_a_fork_that_comes_out_of_its_handler_answers_for_no_task(db, tmp_path, raises):
    said = tmp_path / "joins"
    first = forks.submit(db, f"{said}.begun", raises)
    with app.worker(db, concurrency=1):
        pid, child = db.result(first.id, wait=30)
        second = joins.submit(db, str(said), pid)
        assert db.result(second.id, wait=30) == [child, int(raises)]
    assert [event.kind for event in db.history(second.id)] == ["submitted", "claimed", "completed"]


def test_words_under_another_lease_than_the_one_that_a_child_works_under_are_not_heard(db, children, tmp_path):
    child = children.take()
    lease, _ = claimed(db, tmp_path, "new")
    moves = []
    lease.belief.silence = SimpleNamespace(end=lambda: moves.append("moved"))
    result = msgspec.Raw(b'"own"')
    child._words = iter([
        Moved(token=lease.token - 1), Finished(token=lease.token - 1, how=How.DONE, what=msgspec.Raw(b'"old"')),
        Moved(token=lease.token), Finished(token=lease.token, how=How.DONE, what=result),
    ])  # fmt: skip
    assert child.run(gated, ApartRun(lease, child)).result == result
    assert moves == ["moved"]


@pytest.mark.parametrize("taken", [False, True])
def test_a_handler_that_closes_all_descriptors_ends_its_attempt_and_is_told_so(db, taken):
    task = closes.submit(db, taken)
    with app.worker(db, concurrency=1):
        eventually(lambda: db.task(task.id).state == "failed", within=30)
    assert "its process exited with 76: it could not tell the worker" in db.task(task.id).error


def test_an_error_about_a_name_that_is_no_text_keeps_its_verdict(db):
    task = misnamed.submit(db)
    with app.worker(db, concurrency=1):
        eventually(lambda: db.task(task.id).state not in ("ready", "leased"), within=30)
    assert db.task(task.id).error == "cannot read caf�.txt"
    assert [(event.kind, event.detail.get("code")) for event in db.history(task.id)][1:] == [
        ("claimed", None),
        ("failed", "BAD-FILE"),
    ]


def test_an_idle_child_that_dies_takes_its_group_with_it_and_is_not_taken_again(db, children, tmp_path):
    child = children.take()
    children.give_back(child)
    os.kill(child.process.pid, signal.SIGKILL)
    eventually(lambda: child.process.returncode is not None)
    assert children.take() is not child


def test_a_child_that_cannot_be_started_costs_its_task_no_attempt_and_the_worker_goes_on(db, tmp_path, monkeypatch):
    refused = []

    class Popen(subprocess.Popen):
        def __init__(self, command, *args, **options):
            if "relet.worker.apart" in command and len(refused) < 2:
                refused.append(command)
                raise BlockingIOError(11, "Resource temporarily unavailable")
            super().__init__(command, *args, **options)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    gate = tmp_path / "open"
    gate.touch()
    tasks = [gated.submit(db, str(gate)) for _ in range(2)]
    with app.worker(db, concurrency=2):
        assert all(db.result(task.id, wait=30) for task in tasks)
    assert [db.task(task.id).attempt for task in tasks] == [1, 1]
    assert (len(refused), db.keeper._kept) == (2, {})


def test_p12_a_worker_allows_for_moves_of_a_child_that_it_was_not_told_of(db, tmp_path):
    gate = tmp_path / "open"
    task = quiet.submit(db, str(gate))
    with app.worker(db, concurrency=1):
        (belief,) = eventually(lambda: list(db.keeper._kept))
        assert belief.silence._allowed_ms == belief.silence.told_most_ms > 300_000
        gate.touch()
        db.result(task.id, wait=30)


def test_a_new_child_has_no_entry_of_a_child_that_lives(db, children, monkeypatch):
    monkeypatch.setattr(children, "_free", [0, 1, 2])
    old = children.take()
    for _ in range(4):
        child = children.take()
        assert child.n != old.n
        child.spent = True
        children.give_back(child)


def test_what_is_beside_or_apart_of_a_worker_leaves_no_file_open_and_no_memory(db, start):
    program = start(Path(__file__).parent / "programs" / "open_files.py", db.backend.url)
    _, *counts = [int(program.line()) for _ in range(4)]
    assert counts == counts[:1] * 3
