"""A reader's machine: an empty folder, a store in it, and the programs of this environment."""

import os
import sys
from pathlib import Path

import pytest

from tests.docs.runner import Session


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELET_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("RELET_URL", f"sqlite:///{tmp_path}/relet.db")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    with Session(tmp_path) as reader:
        yield reader
