"""The suite is whole: every module that ships is listed, collected here, and its tests have sentences for names."""

import importlib
from pathlib import Path

import pytest

from relet.testing import conformance

HERE = Path(__file__).parent
SUPPORT = {"__init__", "route", "scenes", "evidence"}


def test_every_module_of_the_suite_is_listed():
    shipped = {path.stem for path in Path(conformance.__file__).parent.glob("*.py")} - SUPPORT
    assert sorted(conformance.MODULES) == sorted(shipped)


@pytest.mark.parametrize("module", conformance.MODULES)
def test_every_module_of_the_suite_is_collected_here(module):
    collected = (HERE / f"test_{module}.py").read_text()
    assert f"from relet.testing.conformance.{module} import *" in collected


@pytest.mark.parametrize("module", conformance.MODULES)
def test_every_test_of_the_suite_takes_the_route_and_has_a_sentence_for_a_name(module):
    suite = importlib.import_module(f"relet.testing.conformance.{module}")
    tests = {name: test for name, test in vars(suite).items() if name.startswith("test_")}
    assert tests
    for name, test in tests.items():
        assert "route" in test.__annotations__, name
        assert len(name.split("_")) >= 4, f"{name} is no sentence"


def test_no_name_is_used_twice_in_one_module():
    for module in conformance.MODULES:
        text = (Path(conformance.__file__).parent / f"{module}.py").read_text()
        names = [line.split("(")[0] for line in text.splitlines() if line.startswith("def ")]
        assert len(names) == len(set(names)), module
