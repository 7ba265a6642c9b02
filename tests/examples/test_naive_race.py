"""The race example shows what it says, as a reader would run it."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "naive_race.py"
COUNTS = re.compile(r": (\d+) of (\d+) tasks were claimed by two or more of \d+ processes, (\d+) by none")


def test_reading_then_writing_doubles_and_one_transaction_does_not():
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (naive, tasks, naive_left), (atomic, _, atomic_left) = COUNTS.findall(done.stdout)
    assert 0 < int(naive) <= int(tasks)
    assert int(atomic) == 0
    assert int(naive_left) == int(atomic_left) == 0


def test_the_example_needs_nothing_but_the_standard_library():
    # -I leaves out the current folder and the user's packages, -S every installed one.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import runpy; runpy.run_path({str(EXAMPLE)!r})"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
