"""Run each mutant against its test, in a copy of the source: `python -m tests.mutants`. 0 when all were killed."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutant import PROMISES, Mutant
from tests.mutants.running import ROOT, run
from tests.mutants.table import MUTANTS

AT_ONCE = 2


class Verdict(NamedTuple):
    """killed, or lives, or stale when the text to break is not there exactly once; and how long that took."""

    word: str
    seconds: float


def main() -> int:
    """Print the table; a mutant that lives, or whose text is gone, is a failure; so is a test that fails unbroken."""
    if not run(ROOT / "src", sorted({mutant.test for mutant in MUTANTS})):
        sys.stdout.write("the tests of the table fail on the code as it is\n")
        return 1
    with ThreadPoolExecutor(AT_ONCE) as threads:
        verdicts = dict(zip(MUTANTS, threads.map(judge, MUTANTS), strict=True))
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


def judge(mutant: Mutant) -> Verdict:
    """Break the one place, run the one test."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="relet-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        file = source / "relet" / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return Verdict("stale", 0)
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        survived = run(source, [mutant.test])
    return Verdict("lives" if survived else "killed", time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main())
