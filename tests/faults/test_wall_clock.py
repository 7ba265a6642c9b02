"""The wall clock of a process is wrong, or is stepped under it (libfaketime): who holds what does not change."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.processes.recording import gaps_s, record_beats
from tests.processes.whole import is_whole
from tests.waiting import eventually

pytestmark = pytest.mark.faults
PROGRAMS = Path(__file__).parents[1] / "processes" / "programs"
HOUR_S = 3_600


class Faked:
    """The wall clock of a program, some seconds off; its other clocks are the true ones."""

    def __init__(self, folder, offset_s):
        self._file = folder / f"offset-{id(self)}"
        self.step_to(offset_s)
        # The program that comes with the library knows where it is.
        told = subprocess.run(
            ["faketime", "-m", "-f", "+0", "printenv", "LD_PRELOAD"], capture_output=True, text=True, check=True
        )
        self.environment = {
            "LD_PRELOAD": told.stdout.strip(), "FAKETIME_TIMESTAMP_FILE": str(self._file), "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip

    def step_to(self, offset_s):
        draft = self._file.with_suffix(".draft")
        draft.write_text(f"{offset_s:+d}\n")
        os.replace(draft, self._file)


@pytest.fixture
def started(start, tmp_path):
    def started(script, *arguments, offset_s=0):
        faked = Faked(tmp_path, offset_s)
        return faked, start(PROGRAMS / "unsleeping.py", PROGRAMS / script, *arguments, environment=faked.environment)

    return started


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
def test_ec_03_a_worker_whose_wall_clock_is_stepped_keeps_its_lease(db, started, url, step_s):
    record_beats(db)
    task = db.submit("work", kind="work")
    faked, program = started("stepped_worker.py", url)
    assert program.line() == "ready"
    token = eventually(lambda: db.task(task.id).token)

    def look():
        program.tell("look")
        return program.value()

    def beats_on():
        """Two more renewals arrive, and it believes what the store does."""
        seen = len(gaps_s(db, token))
        eventually(lambda: len(gaps_s(db, token)) >= seen + 2)
        found = look()
        assert (found["status"], db.task(task.id).live) == ("held", True)
        assert 0 < found["expires_in"] <= 2
        return found["wall"] - time.time()

    assert abs(beats_on()) < 60
    faked.step_to(step_s)
    assert abs(beats_on() - step_s) < 60
    faked.step_to(0)
    assert abs(beats_on()) < 60
    program.tell("end")
    assert db.result(task.id, wait=10) == "done"
    found = db.task(task.id)
    assert (found.token, found.attempt, found.losses) == (token, 1, 0)
    assert max(gaps_s(db, token)) < 1.5
    assert is_whole(db)


@pytest.mark.parametrize("offset_s", [600, -600])
def test_ec_01_a_process_whose_wall_clock_is_off_takes_no_live_lease_and_leaves_no_dead_one(
    db, started, url, offset_s
):
    held, dead = db.submit("work", ttl="60s"), db.submit("work", ttl="1s")
    lease = db.claim(task_id=held.id)
    db.claim(task_id=dead.id)
    _, sweeper = started("sweeper.py", url, "work", "0.05", offset_s=offset_s)
    assert sweeper.line() == "ready"
    assert sweeper.line() == f"took {dead.id}"
    lease.save("still mine")
    lease.complete()
    sweeper.process.stdin.close()
    (said,) = sweeper.rest()
    assert said.startswith("rounds ")
    assert db.task(held.id).attempt == 1
    lapsed = next(event for event in db.history(dead.id) if event.kind == "lapsed")
    assert 0 <= lapsed.detail["expired_ms_ago"] < 5_000
