"""Every code block of the README and the docs does what the page says."""

from pathlib import Path

import pytest

from tests.docs.runner import read_blocks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_does_what_the_page_says(page, session):
    for block in read_blocks(page):
        if block.acts:
            session.run(block)
