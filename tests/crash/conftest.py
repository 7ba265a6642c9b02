"""The programs of this folder, importable by tests and by the processes that they start."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    """Where the apps are."""
    folder = Path(__file__).parent / "programs"
    monkeypatch.syspath_prepend(folder)
    return folder
