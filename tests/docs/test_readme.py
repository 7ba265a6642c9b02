"""The README shows what the demo prints, and its links lead somewhere: Sphinx looks at the other pages."""

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.runner import read_blocks

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


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


def leads_nowhere(link, root):
    """Is there no such file of this repository, or no such heading in it."""
    path, _, anchor = link.partition("#")
    if not (root / path).is_file():
        return True
    heads = re.findall(r"^#+ (.+)$", (root / path).read_text(encoding="utf-8"), re.MULTILINE)
    return bool(anchor) and anchor not in {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_link_leads_to_a_file_and_to_a_heading_of_it():
    links = sorted(set(re.findall(r"\]\(([^)]+)\)", README.read_text(encoding="utf-8"))))
    assert links
    assert [link for link in links if leads_nowhere(link, ROOT)] == []


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "page.md").write_text("# A head: told\n")
    assert not leads_nowhere("page.md#a-head-told", tmp_path)
    assert leads_nowhere("page.md#another", tmp_path)
    assert leads_nowhere("other.md", tmp_path)
