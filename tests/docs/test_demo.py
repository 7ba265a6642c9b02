"""What the README shows of the demo is what the demo prints, but for numbers."""

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.runner import read_blocks

README = Path(__file__).parents[2] / "README.md"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def told(text):
    """The lines of a demo, up to the one that says it held, with every number made equal."""
    lines = [NUMBER.sub("N", line).strip() for line in text.splitlines() if line.strip()]
    return lines[: next(n for n, line in enumerate(lines) if line.startswith("All lines held")) + 1]


def test_the_readme_shows_what_the_demo_prints(session):
    shown = next(block.text for block in read_blocks(README) if block.text.startswith("$ make demo\n  "))
    done = subprocess.run(
        [Path(sys.executable).with_name("relet"), "demo"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert told(shown.removeprefix("$ make demo\n")) == told(done.stdout)
