"""The README shows what the demo prints, and its links lead somewhere: Sphinx looks at the other pages."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.runner import read_blocks

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
NUMBER = re.compile(r"\d+(?:\.\d+)?")
LINKS = sorted(set(re.findall(r"\]\(([^)]+)\)", README.read_text(encoding="utf-8"))))


def told(text):
    """The lines of a demo, up to the one that says it held, with every number made equal."""
    lines = [NUMBER.sub("N", line).strip() for line in text.splitlines() if line.strip()]
    return lines[: next(n for n, line in enumerate(lines) if line.startswith("All lines held")) + 1]


def test_it_shows_what_the_demo_prints_but_for_numbers(session):
    shown = next(block.text for block in read_blocks(README) if block.text.startswith("$ make demo\n  "))
    done = subprocess.run(
        [Path(sys.executable).with_name("relet"), "demo"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert told(shown.removeprefix("$ make demo\n")) == told(done.stdout)


def anchors(page):
    """The headings of a page, as links spell them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("link", LINKS)
def test_a_link_leads_to_a_file_and_to_a_heading_of_it(link):
    path, _, anchor = link.partition("#")
    assert (ROOT / path).is_file()
    assert not anchor or anchor in anchors(ROOT / path)
