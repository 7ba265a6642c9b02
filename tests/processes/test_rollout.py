"""SIGTERM: no more claims, time to save, the lease given back; a rollout costs no attempt."""

import signal
import time
from pathlib import Path

import pytest

from relet.worker.worker import STOP_WAIT_S
from tests.processes.whole import is_whole
from tests.waiting import eventually

PROGRAMS = Path(__file__).parent / "programs"
WORKER = PROGRAMS / "rollout_worker.py"


def kinds(db, task):
    return [str(event.kind) for event in db.history(task.id)]


@pytest.mark.slow
def test_cs_06_five_rollouts_in_a_row_cost_no_attempt_and_lose_no_progress(db, start, url):
    task = db.submit("work", kind="steps", max_attempts=2, max_losses=2)
    for run in range(1, 6):
        program = start(WORKER, url, "30s")
        assert program.line() == f"steps {run}"
        program.send(signal.SIGTERM)
        assert program.line() == "draining"
        assert program.wait() == 0
        found = db.task(task.id)
        assert (found.state, found.attempt, found.failures, found.losses) == ("ready", 1, 0, 0)
    program = start(WORKER, url, "30s")
    assert program.line() == "steps 6"
    assert db.result(task.id, wait=10) == 6
    assert db.stats("work").queues[0].takeovers == 0
    assert is_whole(db)


def test_cs_06_past_the_grace_the_handler_is_stopped_and_its_lease_released(db, start, url):
    task = db.submit("work", kind="patient")
    program = start(WORKER, url, "100ms")
    assert program.line() == "patient"
    program.send(signal.SIGTERM)
    assert program.line() == "stopped released"
    assert program.wait() == 0
    assert kinds(db, task) == ["submitted", "claimed", "released"]
    assert (db.task(task.id).state, db.task(task.id).attempt) == ("ready", 1)


def test_cs_06_a_second_signal_ends_it_at_once(db, start, url):
    task = db.submit("work", kind="patient")
    program = start(WORKER, url, "1h")
    assert program.line() == "patient"
    program.send(signal.SIGTERM)
    eventually(lambda: "once more to abort" in program.errors)
    program.send(signal.SIGTERM)
    assert program.line(within=5) == "stopped released"
    assert program.wait(within=5) == 0
    assert kinds(db, task) == ["submitted", "claimed", "released"]


@pytest.mark.slow
def test_cs_06_a_second_signal_ends_a_handler_that_never_listens_too(db, start, url):
    task = db.submit("work", kind="deaf")
    program = start(WORKER, url, "1h")
    assert program.line() == "deaf"
    program.send(signal.SIGTERM)
    eventually(lambda: "once more to abort" in program.errors)
    begun = time.monotonic()
    program.send(signal.SIGTERM)
    assert program.line(within=STOP_WAIT_S + 5) == "ended"
    assert program.wait() == 0
    assert time.monotonic() - begun < STOP_WAIT_S + 5
    assert (db.task(task.id).state, db.task(task.id).attempt) == ("ready", 1)


def test_a_third_signal_is_the_systems_own(db, start, url):
    db.submit("work", kind="deaf")
    program = start(WORKER, url, "1h")
    assert program.line() == "deaf"
    for said in ("once more to abort", "aborting"):
        program.send(signal.SIGTERM)
        eventually(lambda said=said: said in program.errors)
    program.send(signal.SIGTERM)
    assert program.wait(within=5) == -signal.SIGTERM


def test_cr_09_a_draining_worker_leaves_new_tasks_to_its_successor_of_the_same_name(db, start, url):
    long = db.submit("work", kind="long")
    old = start(WORKER, url, "30s")
    assert old.line() == "long"
    old.send(signal.SIGTERM)
    eventually(lambda: "once more to abort" in old.errors)
    short = db.submit("work", kind="short")
    new = start(WORKER, url, "30s")
    assert new.line() == "short"
    assert db.result(short.id, wait=10) == "short"
    # The old one finishes what it has, and takes nothing any more, not even what comes free as it ends.
    again = db.submit("work", kind="short")
    old.tell("go on")
    assert old.line() == "ended"
    assert old.wait() == 0
    assert db.result(long.id) == "long"
    assert new.line() == "short"
    assert db.result(again.id, wait=10) == "short"
    assert db.task(long.id).attempt == db.task(short.id).attempt == 1


def test_cr_09_a_task_that_the_old_worker_gives_back_runs_on_the_new_one(db, start, url):
    task = db.submit("work", kind="steps")
    old = start(WORKER, url, "30s")
    assert old.line() == "steps 1"
    new = start(WORKER, url, "30s")
    old.send(signal.SIGTERM)
    assert old.until("ended") == ["draining"]
    assert new.line() == "steps 2"
    assert old.wait() == 0
    found = db.task(task.id)
    assert (found.live, found.attempt) == (True, 1)
    assert kinds(db, task) == ["submitted", "claimed", "saved", "released", "claimed", "saved"]
