"""Holders are real processes, and none outlives the test that started it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from relet.testing import Clock, CrashTestFailed, crash_test
from relet.testing.stores import open_store
from tests.alive import is_gone
from tests.waiting import eventually

PROGRAMS = Path(__file__).parent / "programs"
HOLDERS = """
import os
from relet.testing.crash.drive import _Driving

def wake(self):
    print(self._asleep.pid, flush=True)
    os.kill(os.getpid(), 9)

_Driving._wake = wake
from relet.testing import crash_test
crash_test("good:app", "short", {"topic": "grain"}, point="freeze-before:2")
"""
COMMAND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from relet.cli.entry import main
main()
"""


def test_a_frozen_holder_dies_with_a_test_that_is_killed(tmp_path):
    found = os.pathsep.join([str(PROGRAMS), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", HOLDERS], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": found},
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    frozen = int(done.stdout)
    eventually(lambda: is_gone(frozen))


def test_what_a_holder_printed_is_shown_with_the_finding(tmp_path):
    try:
        crash_test("broken:app", "catches_everything", point="freeze-before:2", seed=1, keep=tmp_path)
    except CrashTestFailed as failed:
        report = failed.report
    assert "returned although it had been told to stop" in report.findings[0].words
    with open_store(tmp_path / "run-1", Clock(tmp_path / "run-1" / "clock")) as db:
        assert db.task("crash-1-1").state == "done"


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("holder", ["words-1", "words-2"])
@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda told: told.name)
def test_a_crash_test_that_is_told_to_end_leaves_no_folder_no_process_and_no_traceback(tmp_path, told, holder, jobs):
    found = os.pathsep.join([str(PROGRAMS), *filter(None, sys.path)])
    words = ["crashtest", "good:app", "short", "--input", '{"topic": "x"}', "--runs", "500", "--jobs", jobs]
    test = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": found}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    eventually(lambda: list(tmp_path.glob(f"relet-crash-*/{holder}")))
    test.send_signal(told)
    _, err = test.communicate(timeout=60)  # their end of the pipe is the nurseries' and the holders' too
    assert test.returncode == 130, err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
