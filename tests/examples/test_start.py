"""The three programs of the first page do what the page says, and are the ones on the page."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.runner import matches, read_blocks

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "examples" / "start"
PAGE = ROOT / "docs" / "start.md"
PRINTED = {
    "service.py": ["All about grain. All about rye.", "asked twice, done once: True"],
    "notebook.py": ["attempts: 4", "fast done 8 None", "slow done 8 None", "broken failed None HTTP-404"],
    "embedded.py": ["A begins at page 1", "B begins at page 4", "done by B in attempt 2: {'words': 20}"],
}


def test_every_program_is_tried():
    assert {path.name for path in PROGRAMS.glob("*.py")} == PRINTED.keys()


@pytest.mark.parametrize("name", PRINTED)
def test_the_program_does_what_it_says(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", PROGRAMS / name],
        cwd=tmp_path,
        env={**os.environ, "RELET_STATE_DIR": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert matches(PRINTED[name], done.stdout), done.stdout


@pytest.mark.parametrize("name", PRINTED)
def test_the_page_shows_this_very_program(name):
    shown = {block.mark_text: block.text for block in read_blocks(PAGE) if block.mark == "file"}
    assert shown[name] == (PROGRAMS / name).read_text(encoding="utf-8")
