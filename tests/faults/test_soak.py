"""A minute of the soak: `make soak` goes on for half an hour."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.program import IMPORTS

ROOT = Path(__file__).parents[2]


@pytest.mark.faults
def test_a_minute_of_work_under_kills_and_stops_loses_and_repeats_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", IMPORTS)
    command = [sys.executable, "-m", "tests.soak", "--minutes", "1", "--rate", "20", "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n0 findings" in done.stdout
