"""Run each mutant against its test, in a copy of the source: `python -m tests.mutants`. 0 when all were killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Print the table; a mutant that lives, or whose text is gone, is a failure; so is a test that fails unbroken."""
    tests = sorted({mutant.test for mutant in MUTANTS})
    if not run(ROOT / "src", tests):
        sys.stdout.write("the tests of the table fail on the code as it is\n")
        return 1
    alive = 0
    for mutant in MUTANTS:
        verdict = judge(mutant)
        alive += verdict != "killed"
        sys.stdout.write(f"{verdict:8} {mutant.name}\n         by {mutant.test}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(MUTANTS) - alive} of {len(MUTANTS)} killed\n")
    return 1 if alive else 0


def judge(mutant: Mutant) -> str:
    """killed, or lives, or stale when the text to break is not there exactly once."""
    with tempfile.TemporaryDirectory(prefix="relet-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        file = source / "relet" / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return "stale"
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        return "lives" if run(source, [mutant.test]) else "killed"


def run(source: Path, tests: list[str]) -> bool:
    """Do the tests pass with relet taken from `source`."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False, timeout=300)
    if done.returncode not in (0, 1):
        sys.stdout.write(done.stdout.decode()[-2_000:])
        raise SystemExit(f"pytest ended with {done.returncode} on {tests}")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
