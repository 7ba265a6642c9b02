"""Whether a process has ended is told at every moment of its end."""

import subprocess
from pathlib import Path

from tests.alive import GONE, is_gone, state_of
from tests.waiting import eventually


def test_a_process_has_ended_before_anybody_has_asked_for_its_exit_code_and_after_that():
    process = subprocess.Popen(["sleep", "60"])
    assert not is_gone(process.pid)
    process.kill()
    eventually(lambda: state_of(process.pid) == "Z")
    assert is_gone(process.pid)
    process.wait()
    assert state_of(process.pid) == GONE


def test_a_process_that_ends_while_it_is_looked_at_has_ended(monkeypatch):
    process = subprocess.Popen(["sleep", "60"])

    def read(path, **options):
        with path.open(**options) as file:
            process.kill()
            process.wait()
            return file.read()

    monkeypatch.setattr(Path, "read_text", read)
    assert state_of(process.pid) == GONE
