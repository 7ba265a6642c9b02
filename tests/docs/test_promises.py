"""Every promise names tests, and the tests are there."""

import re
from pathlib import Path

import pytest

from docs.generator import promised
from tests.mutants.mutant import PROMISES
from tests.mutants.table import MUTANTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")


def promises(page):
    told, _, _ = page.partition("## Not promised")
    return [one for one in told.split("\n\n") if one.startswith("**")]


def without_a_test(page):
    return [one for one in promises(page) if not re.search(r"\n\*\[`tests/[^*]*[)`]\*$", one)]


def named_tests(page):
    """Those that promises name within a file, as `file::name`."""
    file = ""
    for path, name in re.findall(r"`(tests/[^`]+\.py)`|`(test_\w+)`", "\n".join(promises(page))):
        file = path or file
        if name:
            yield f"{file}::{name}"


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


def test_every_test_that_a_promise_names_is_in_the_file_before_it():
    named = list(named_tests(PAGE))
    assert len(named) > 40
    assert [one for one in named if not promised.is_there(one)] == []


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
    by_name = "**One.** Word.\n*[`tests/a.py`](../tests/a.py)\n`test_x`,\n`test_y`*\n\n"
    assert without_a_test(by_name) == []
    assert list(named_tests(by_name)) == ["tests/a.py::test_x", "tests/a.py::test_y"]


@pytest.mark.parametrize("promise", [name for name in PROMISES if re.fullmatch(r"P\d+", name)])
def test_every_numbered_promise_is_told_and_names_tests_that_are_there_and_mutants(promise):
    assert any(f"({promise})" in one for one in promises(PAGE))
    _, _, told = PAGE.partition(f"#### {promise}: {PROMISES[promise]}\n")
    told, _, _ = told.partition("####")
    lines = [line for line in told.splitlines() if line.startswith("- ")]
    assert [line for line in lines if "[mutant](../tests/mutants/" not in line] != []
    assert [line for line in lines if "[mutant](../tests/mutants/" in line] != []
    for line in lines:
        (file, name) = re.findall(r"\[`(tests/[^`]+)`\]\(\S+\) `(test_\w+)`$", line)[0]
        assert promised.is_there(f"{file}::{name}"), line


def test_no_other_number_is_told():
    told = {number for one in promises(PAGE) for number in re.findall(r"\((P\d+)\)", one)}
    assert told == set(promised.SHOWN) <= set(PROMISES)


def test_a_test_that_is_not_there_and_a_promise_without_a_mutant_are_refused(monkeypatch):
    assert not promised.is_there("tests/docs/test_promises.py::test_no_such")
    assert not promised.is_there("tests/docs/test_gone.py::test_no_other_number_is_told")
    monkeypatch.setattr(promised, "SHOWN", {"P1": ("tests/docs/test_promises.py::test_no_such",)})
    with pytest.raises(LookupError, match="P1 is shown by what is not there"):
        promised.parts()
    monkeypatch.setattr(promised, "SHOWN", {"P1": ("tests/docs/test_promises.py::test_no_other_number_is_told",)})
    monkeypatch.setattr(promised, "MUTANTS", {})
    with pytest.raises(LookupError, match="P1 has no mutant"):
        promised.parts()


def test_the_page_has_every_mutant_of_the_table():
    assert {one.name for of_file in promised.MUTANTS.values() for one in of_file} == {one.name for one in MUTANTS}
