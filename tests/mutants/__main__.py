"""Run each mutant against its test, in a copy of the source: `python -m tests.mutants`. 0 when all were killed."""

from __future__ import annotations

import compileall
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import cache_from_source
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutant import PROMISES, Mutant
from tests.mutants.running import ROOT, run
from tests.mutants.table import MUTANTS

AT_ONCE = 3
"""More than two processors have to do: most of a test with processes is waiting."""
PARTS = 4
"""Of the tests on the code as it is: none of the threads is left without work while another has much."""


class Verdict(NamedTuple):
    """killed, or lives, or stale when the text to break is not there exactly once; and how long that took."""

    word: str
    seconds: float


def main() -> int:
    """Print the table; a mutant that lives, or whose text is gone, is a failure; so is a test that fails unbroken."""
    with tempfile.TemporaryDirectory(prefix="relet-mutants-") as folder, ThreadPoolExecutor(AT_ONCE) as threads:
        unbroken = compiled(Path(folder) / "src")
        passing = [threads.submit(run, unbroken, tests) for tests in parts()]
        # From the end, where those are that take longest.
        judging = {mutant: threads.submit(judge, mutant, unbroken) for mutant in reversed(MUTANTS)}
        if failed := [ran.result().said for ran in passing if not ran.result().passed]:
            threads.shutdown(cancel_futures=True)
            sys.stdout.write("\n".join([*failed, "the tests of the table fail on the code as it is\n"]))
            return 1
        verdicts = {mutant: judging[mutant].result() for mutant in MUTANTS}
    sys.stdout.write("".join(shown(verdicts)))
    killed = sum(verdict.word == "killed" for verdict in verdicts.values())
    sys.stdout.write(f"{killed} of {len(MUTANTS)} killed\n")
    return 0 if killed == len(MUTANTS) else 1


def shown(verdicts: dict[Mutant, Verdict]) -> list[str]:
    """The table by promise; a mutant that breaks two stands under both."""
    lines = []
    for promise, text in PROMISES.items():
        lines.append(f"\n{promise}: {text}\n")
        for mutant, verdict in verdicts.items():
            if promise in mutant.promises:
                lines.append(f"  {verdict.word:6} {verdict.seconds:4.1f} s  {mutant.name}\n")
                lines.append(f"                 by {mutant.test}\n")
    return lines


def compiled(source: Path) -> Path:
    """A copy of the source, with its bytecode: no process that a test starts has to make that anew."""
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(source, quiet=2)
    return source


def parts() -> list[list[str]]:
    """The tests of the table; those of one file stay together, for what they share."""
    tests = sorted({mutant.test for mutant in MUTANTS})
    files = [list(of_file) for _, of_file in groupby(tests, key=lambda test: test.partition("::")[0])]
    return [[test for of_file in files[n::PARTS] for test in of_file] for n in range(PARTS)]


def judge(mutant: Mutant, unbroken: Path) -> Verdict:
    """Break the one place, run the one test."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="relet-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(unbroken, source, copy_function=os.link)
        file = source / "relet" / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return Verdict("stale", 0)
        # Not through the link, and without the bytecode of what it was.
        file.unlink()
        Path(cache_from_source(str(file))).unlink(missing_ok=True)
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        ran = run(source, [mutant.test])
    return Verdict("lives" if ran.passed else "killed", time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main())
