"""However exec ends a program, nobody of its process group is left; and the task says why it ended."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from relet.worker.child import Interrupts
from tests.processes.program import gone, living_in_group
from tests.waiting import eventually
from tests.write_lock import write_lock_held

PROGRAMS = Path(__file__).parent / "programs"
EXEC = PROGRAMS / "exec_program.py"
FAMILY = "sleep 300 & sleep 300 & echo $$; wait"
DEAF = f'trap "" TERM; {FAMILY}; wait; wait'


class Running:
    """Exec, at work on one task, with a program that has children."""

    def __init__(self, start, db, url, command=FAMILY, ttl=None, task_timeout=None, **options):
        self.task = db.submit("work", ttl=ttl, timeout=task_timeout)
        self.program = start(EXEC, url, "work", json.dumps(options), "sh", "-c", command)
        self.group = int(self.program.line())

    def ends(self):
        """Its exit code, once it has ended and left nobody behind."""
        code = self.program.wait()
        assert gone(self.group)
        return code


@pytest.fixture
def running(start, db, url):
    made = []

    def running(*command, **options):
        made.append(Running(start, db, url, *command, **options))
        return made[-1]

    yield running
    for one in made:
        if living_in_group(one.group):
            os.killpg(one.group, signal.SIGKILL)


@pytest.mark.parametrize("command", [FAMILY, DEAF])
def test_cs_03_a_timeout_ends_the_whole_group_and_fails_the_attempt(db, running, command):
    one = running(command, timeout="0.3s", grace="0.2s")
    assert one.ends() == 124
    found = db.task(one.task.id)
    assert (found.state, found.code, found.failures, found.losses) == ("ready", "RELET-TIMEOUT", 1, 0)


def test_the_family_of_a_program_is_found_while_it_lives(db, running):
    assert len(living_in_group(running(grace="0.2s").group)) == 3


def test_cs_03_the_timeout_of_the_task_counts_too(db, running):
    one = running(task_timeout="0.3s", timeout="1h", grace="0.2s")
    assert one.ends() == 124
    assert db.task(one.task.id).code == "RELET-TIMEOUT"


@pytest.mark.parametrize("command", [FAMILY, DEAF])
def test_cs_03_a_cancel_ends_the_whole_group_and_then_the_task_is_cancelled(db, running, command):
    one = running(command, ttl="1s", grace="0.2s")
    db.cancel(one.task.id, "enough")
    assert one.ends() == 5
    found = db.task(one.task.id)
    assert (found.state, found.reason, found.attempt) == ("cancelled", "enough", 1)


@pytest.mark.parametrize("command", [FAMILY, DEAF])
def test_cs_03_a_lost_lease_ends_the_whole_group(db, running, command):
    one = running(command, ttl="1s", grace="0.2s")
    with write_lock_held(db):
        assert one.ends() == 5
    assert "not trusted any more" in one.program.errors
    assert "completed" not in [event.kind for event in db.history(one.task.id)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_cs_03_a_signal_ends_the_whole_group_and_gives_the_task_back(db, running, number):
    one = running(grace="30s")
    one.program.send(number)
    assert one.ends() == 130
    assert (db.task(one.task.id).state, db.task(one.task.id).attempt) == ("ready", 1)
    assert db.history(one.task.id)[-1].kind == "released"


def test_a_terminal_that_goes_ends_a_deaf_program_after_its_grace(db, running):
    one = running(DEAF, grace="0.2s")
    one.program.send(signal.SIGHUP)
    assert one.ends() == 130
    assert (db.task(one.task.id).state, db.task(one.task.id).attempt) == ("ready", 1)


def test_who_ignores_hangups_goes_on_when_the_terminal_goes():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.seen == 0
            os.kill(os.getpid(), signal.SIGTERM)
            assert interrupts.seen == 1
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_cs_06_a_second_signal_does_not_wait_for_the_grace(db, running):
    one = running(DEAF, grace="1h")
    one.program.send(signal.SIGTERM)
    eventually(lambda: "once more to kill it" in one.program.errors)
    one.program.send(signal.SIGTERM)
    assert one.ends() == 130
    assert (db.task(one.task.id).state, db.task(one.task.id).attempt) == ("ready", 1)


def test_a_program_that_ends_well_within_the_grace_is_done(db, start, url):
    task = db.submit("work")
    program = start(EXEC, url, "work", json.dumps({"grace": "30s"}), sys.executable, PROGRAMS / "polite.py")
    assert program.line() == "ready"
    program.send(signal.SIGTERM)
    assert program.wait() == 0
    assert db.result(task.id) == "on the way out"


def test_what_a_program_leaves_in_the_background_ends_with_it(db, running):
    one = running("sleep 300 & sleep 300 & echo $$; exit 0")
    assert one.ends() == 0
    assert db.task(one.task.id).state == "done"


def test_cr_09_loop_claims_nothing_after_a_signal(db, running):
    one = running(loop=True, grace="30s")
    other = db.submit("work")
    one.program.send(signal.SIGTERM)
    assert one.ends() == 0, "it was to go on until a signal"
    assert db.task(other.id).token is None
    assert db.task(one.task.id).state == "ready"


@pytest.mark.parametrize(("command", "state"), [("true", "done"), ("false", "failed")])
def test_a_signal_while_it_waits_for_a_task_ends_loop_well_whatever_the_last_one_came_to(
    db, start, url, command, state
):
    first = db.submit("work", max_attempts=1)
    program = start(EXEC, url, "work", json.dumps({"loop": True}), command)
    eventually(lambda: db.task(first.id).state == state)
    program.send(signal.SIGTERM)
    assert program.wait() == 0
