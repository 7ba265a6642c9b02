"""Every promise names tests, and the tests are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
PROMISES, _, _ = PAGE.partition("## Not promised")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE)))


@pytest.mark.parametrize("path", NAMED)
def test_a_test_that_the_page_names_is_there(path):
    assert (ROOT / path).is_file()


def test_every_promise_names_a_test():
    promises = [one for one in PROMISES.split("\n\n") if one.startswith("**")]
    assert len(promises) > 20
    assert [one for one in promises if not re.search(r"\n\*`tests/[^*]*`\*$", one)] == []
