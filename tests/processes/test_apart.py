"""Handlers in processes of their own: what they answer comes back, and nothing of them outlives their lease."""

import os
import signal
from pathlib import Path

import pytest

import relet
from tests.processes.program import gone, living_in_group
from tests.waiting import eventually

PROGRAM = Path(__file__).parent / "programs" / "apart_worker.py"


@pytest.fixture
def worker(start, url):
    return lambda *more: start(PROGRAM, url, *more)


def test_results_come_back_and_the_child_is_kept_for_the_next_task(db, worker):
    program = worker()
    first, second = (db.result(db.submit("work", {"n": n}, kind="double").id, wait=30) for n in (1, 2))
    assert (first["double"], second["double"]) == (2, 4)
    assert first["pid"] == second["pid"] != program.pid
    assert first["parent"] == program.pid


def test_steps_saves_and_waits_go_through_the_child(db, worker):
    worker()
    task = db.submit("work", kind="steps")
    eventually(lambda: db.task(task.id).state == "waiting")
    assert db.steps(task.id)[0].name == "one"
    db.decide(task.id, "go", "accept")
    assert db.result(task.id, wait=30) is True
    assert db.task(task.id).attempt == 1


def test_an_error_comes_back_with_its_verdict(db, worker):
    worker()
    task = db.submit("work", kind="fails")
    with pytest.raises(relet.TaskFailed):
        db.result(task.id, wait=30)
    found = db.task(task.id)
    assert (found.error, found.code, found.reason) == ("no good", "NO-GOOD", "permanent")


def test_a_crash_of_native_code_ends_the_attempt_and_not_the_worker(db, worker):
    program = worker()
    task = db.submit("work", kind="crashes")
    eventually(lambda: db.task(task.id).state == "failed", within=30)
    assert "its process was ended by SIGSEGV" in db.task(task.id).error
    assert db.result(db.submit("work", {"n": 4}, kind="double").id, wait=30)["double"] == 8
    assert program.process.poll() is None


@pytest.mark.slow
def test_work_that_holds_the_gil_needs_no_heartbeat_beside_it(db, worker):
    worker()
    task = db.submit("work", kind="gil")
    assert db.result(task.id, wait=30) == "done"
    assert db.task(task.id).attempt == 1


def test_a_cancelled_handler_that_does_not_listen_is_killed_with_its_children(db, worker):
    program = worker()
    task = db.submit("work", kind="unheeding")
    group = int(program.line().split()[1])
    assert len(living_in_group(group)) == 2
    db.cancel(task.id, "enough")  # its worker hears of it at the next beat
    assert gone(group, within=15)
    eventually(lambda: db.task(task.id).state == "cancelled")
    assert db.result(db.submit("work", {"n": 4}, kind="double").id, wait=30)["double"] == 8
    assert program.process.poll() is None


def test_a_handler_past_its_timeout_is_killed_and_who_left_its_group_is_named(db, worker):
    program = worker()
    db.result(db.submit("work", {"n": 1}, kind="double").id, wait=30)  # the start of a child takes of the timeout too
    task = db.submit("work", kind="late")
    _, group, left = program.line().split()
    try:
        eventually(lambda: db.task(task.id).state == "failed")
        assert gone(int(group))
        assert (db.task(task.id).code, f"{left} (sleep)" in db.task(task.id).error) == ("RELET-TIMEOUT", True)
        assert any(left in str(event.detail) for event in db.history(task.id))
    finally:
        os.kill(int(left), signal.SIGKILL)


def test_a_handler_that_listens_gives_way_when_the_worker_ends(db, worker):
    program = worker("0.1s")
    task = db.submit("work", kind="heeds")
    group = int(program.line().split()[1])
    program.send(signal.SIGTERM)
    assert program.line() == "gives way released"
    assert program.wait() == 0
    assert gone(group)
    found = db.task(task.id)
    assert (found.state, found.attempt) == ("ready", 1)


@pytest.mark.slow
def test_p12_a_silent_child_is_let_go_of_and_one_that_moves_is_kept(db, worker):
    worker()
    silent, moving = (db.submit("work", {"moves": moves}, kind="silent") for moves in (False, True))
    assert db.result(moving.id, wait=30) == "done"
    assert db.task(moving.id).attempt == 1
    lapsed = eventually(lambda: [event for event in db.history(silent.id) if event.kind == "lapsed"])
    assert lapsed[0].detail["why"] == "expired"


@pytest.mark.of_sqlite
def test_a_killed_worker_leaves_no_child_and_no_grandchild_and_its_task_passes_on_at_once(db, worker):
    program = worker()
    task = db.submit("work", kind="hangs")
    group = int(program.line().split()[1])
    program.process.kill()
    lease = db.claim("work", wait=5)
    assert (lease.task_id, lease.took_over.reason) == (task.id, "holder_died")
    assert gone(group)


@pytest.mark.of_sqlite
def test_a_child_acts_under_its_lease_without_loosening_it(db, worker):
    program = worker()
    task = db.submit("work", kind="saves")
    group = int(program.line().split()[1])
    program.process.kill()
    lease = db.claim("work", wait=5)
    assert (lease.task_id, lease.load(), lease.took_over.reason) == (task.id, "half", "holder_died")
    assert gone(group)


def test_a_handler_that_another_process_cannot_find_is_refused_at_the_start(db):
    app = relet.App()

    @app.task("inner", isolation="process")
    def inner(run):
        return None

    with pytest.raises(relet.Invalid, match="not at the top of a module"):
        app.run_until_idle(db)
