"""Every fault that others met has one row, and a test of ours or a reason."""

from collections import Counter

import pytest

from docs.generator import faults
from docs.generator.cases import APART, CASES, NOT_BUILT, TITLES

IDS = [case.id for case in CASES]


def test_every_case_is_there_once_and_each_kind_in_one_piece():
    assert [name for name, count in Counter(IDS).items() if count > 1] == []
    kinds = [name[:2] for name in IDS]
    assert list(dict.fromkeys(kinds)) == list(TITLES)
    assert kinds == sorted(kinds, key=list(TITLES).index)
    assert sorted(IDS, key=lambda name: (list(TITLES).index(name[:2]), name)) == IDS


def test_what_waits_and_what_is_left_open_are_cases():
    assert NOT_BUILT.keys() | APART.keys() <= set(IDS)


def test_every_case_that_a_test_names_is_one():
    assert faults.shown().keys() <= set(IDS)


def test_a_case_is_named_by_a_test_or_by_a_marker():
    text = """
import pytest

def test_cr_01_one_wins(): ...

@pytest.mark.slow
@pytest.mark.case("CR-03", "EC-04")
async def test_cr_05_comes_back(): ...

def test_a_lease_of_ab_01_is_none(): ...
"""
    assert list(faults.told(text)) == [
        ("test_cr_01_one_wins", ["CR-01"]),
        ("test_cr_05_comes_back", ["CR-05", "CR-03", "EC-04"]),
        ("test_a_lease_of_ab_01_is_none", []),
    ]


def test_a_case_is_met_left_open_in_part_or_waits_and_never_nothing(monkeypatch):
    assert faults.status("CR-01", {"CR-01": ["a::b"]}) == "met"
    assert faults.status("HT-04", {}) == f"not built yet: {NOT_BUILT['HT-04']}"
    assert faults.status("HT-04", {"HT-04": ["a::b"]}) == "met"
    assert faults.status("HT-01", {"HT-01": ["a::b"]}) == f"met; {APART['HT-01']}"
    with pytest.raises(LookupError, match="no test shows CR-01"):
        faults.status("CR-01", {})
    monkeypatch.setattr(faults, "shown", lambda: {"XX-01": ["a::b"]})
    with pytest.raises(LookupError, match="XX-01"):
        faults.parts()
