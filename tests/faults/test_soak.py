"""A minute of the soak, at the file and by way of a service: `make soak` goes on for half an hour."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.program import IMPORTS

ROOT = Path(__file__).parents[2]


@pytest.mark.faults
@pytest.mark.parametrize(("route", "minutes", "rate"), [("file", "1", "20"), ("http", "0.75", "60")])
def test_a_minute_of_work_under_kills_and_stops_loses_and_repeats_nothing(
    monkeypatch, tmp_path, route, minutes, rate
):
    monkeypatch.setenv("PYTHONPATH", IMPORTS)
    options = ["--route", route, "--minutes", minutes, "--rate", rate, "--folder", str(tmp_path)]
    command = [sys.executable, "-m", "tests.soak", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n0 findings" in done.stdout
