"""Every promise names tests, and the tests are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")


def promises(page):
    told, _, _ = page.partition("## Not promised")
    return [one for one in told.split("\n\n") if one.startswith("**")]


def without_a_test(page):
    return [one for one in promises(page) if not re.search(r"\n\*\[`tests/[^*]*\)\*$", one)]


def gone(page, root):
    named = sorted(set(re.findall(r"`(tests/[^`]+\.py)`", page)))
    return [path for path in named if not (root / path).is_file()]


def misled(page):
    """Links that lead elsewhere than to the test that they name."""
    return [name for name, path in re.findall(r"`(tests/[^`]+\.py)`(?:\]\((.*?)\))?", page) if path != f"../{name}"]


def test_every_promise_names_a_test():
    assert len(promises(PAGE)) > 20
    assert without_a_test(PAGE) == []


def test_every_test_that_the_page_names_is_there():
    assert gone(PAGE, ROOT) == []


def test_every_test_that_the_page_names_is_linked():
    assert misled(PAGE) == []


def test_a_promise_without_a_test_and_a_test_that_is_gone_are_found(tmp_path):
    page = (
        "**One.** Word.\n*[`tests/a.py`](../tests/b.py)*\n\n**Two.** Word.\n\n## Not promised\n\n**Three.** Word.\n"
    )
    assert misled(page) == ["tests/a.py"]
    assert misled("`tests/a.py`") == ["tests/a.py"]
    assert without_a_test(page) == ["**Two.** Word."]
    assert gone(page, tmp_path) == ["tests/a.py"]
