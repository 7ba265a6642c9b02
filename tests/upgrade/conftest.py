"""The library as it was one schema ago, in processes of its own."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.processes.program import IMPORTS, Programs

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"


@pytest.fixture(scope="session")
def former(tmp_path_factory):
    """A folder to import the former library from."""
    folder = tmp_path_factory.mktemp("former")
    with zipfile.ZipFile(HERE / "relet-schema-1.zip") as packed:
        packed.extractall(folder)
    return folder


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("RELET_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/work.db"


@pytest.fixture
def said_by_former(former, state):
    """What a few lines print that the former library runs, with `db` open."""

    def said(url, lines):
        program = f"import relet\nwith relet.connect({url!r}, holder='former') as db:\n"
        program += "".join(f"    {line}\n" for line in lines.splitlines())
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(former)},
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else done.stderr

    return said


@pytest.fixture
def made_by_former(url, said_by_former):
    """A store of the former schema: one task done, one held, one ready."""
    said = said_by_former(url, "db.submit_many('q', [1, 2, 3], ids=['done', 'held', 'ready'])\n"
                               "db.claim('q').complete('result')\nprint(db.claim('q', ttl=600).handle)")  # fmt: skip
    assert said.startswith("r1."), said
    return said.strip()


@pytest.fixture
def start(tmp_path, former):
    """Start a program under the former library, or under the one of this tree."""
    with Programs(tmp_path) as programs:

        def start(name, *arguments, former_library=False):
            path = str(former) if former_library else IMPORTS
            return programs.start(PROGRAMS / name, *arguments, environment={"PYTHONPATH": path})

        yield start
