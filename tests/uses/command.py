"""An example as its reader runs it."""

import os
import subprocess
import sys

from tests.processes.program import IMPORTS, ROOT


def run_example(name, *options, said=""):
    """`python -m examples.NAME`, with a model that thinks for a moment; what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", f"examples.{name}", *options], cwd=ROOT, input=said,
        env={**os.environ, "PYTHONPATH": IMPORTS, "EXAMPLE_MODEL_SECONDS": "0.1"}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
