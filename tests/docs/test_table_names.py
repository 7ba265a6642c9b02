"""The names that tables of a user must not have are those that the page of steps lists."""

import re
from pathlib import Path

from relet.store.sqlite.own import RELETS

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "steps.md"


def listed(page):
    """The names between the sentence that begins the list and its full stop."""
    (found,) = re.findall(r"names that relet's have not: ([^.]*)\.", page)
    return re.findall(r"`(\w+)`", found)


def test_the_page_lists_every_table_of_the_store():
    assert listed(PAGE.read_text(encoding="utf-8")) == sorted(RELETS)
