"""Every promise has a mutant, every mutant a promise, a place in the code and a test that is there."""

import re
from pathlib import Path

import pytest

from tests.mutants.mutant import PROMISES
from tests.mutants.table import MUTANTS

ROOT = Path(__file__).parents[2]
NUMBERED = [name for name in PROMISES if re.fullmatch(r"P\d+", name)]


@pytest.mark.parametrize("promise", NUMBERED)
def test_every_promise_has_a_mutant(promise):
    assert [mutant.name for mutant in MUTANTS if promise in mutant.promises]


def test_names_and_promises_of_mutants_are_good():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        assert mutant.promises, mutant.name
        assert set(mutant.promises) <= PROMISES.keys(), mutant.name


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_finds_its_place_and_its_test(mutant):
    assert (ROOT / "src" / "relet" / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
    file, *_, test = mutant.test.split("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    if "conformance" in file:
        module = Path(file).name.removeprefix("test_")
        text += (ROOT / "src" / "relet" / "testing" / "conformance" / module).read_text(encoding="utf-8")
    assert f"def {test}(" in text
