"""The page of faults: which test shows each case, read from the names and markers of the tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from docs.generator.cases import APART, CASES, NOT_BUILT, TITLES
from docs.generator.markdown import code, table

ROOT: Final = Path(__file__).parents[2]
PLACES: Final = ("tests", "src/relet/testing/conformance")
NAMED: Final = re.compile(r"test_([a-z]{2})_(\d\d)_")

Shown = dict[str, list[str]]
"""By the id of a case, the tests that show it, as `file::name`."""


def shown(root: Path = ROOT) -> Shown:
    """Every test that says, by its name or by `@pytest.mark.case`, which cases it shows."""
    found: Shown = {}
    for place in PLACES:
        for path in sorted((root / place).rglob("*.py")):
            for name, cases in told(path.read_text(encoding="utf-8")):
                for case in cases:
                    found.setdefault(case, []).append(f"{path.relative_to(root)}::{name}")
    return found


def told(text: str) -> Iterator[tuple[str, list[str]]]:
    """The tests of a file, and the cases that each names."""
    for one in ast.parse(text).body:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name.startswith("test_"):
            named = NAMED.match(one.name)
            by_name = [f"{named[1].upper()}-{named[2]}"] if named else []
            yield one.name, [*by_name, *(case for mark in one.decorator_list for case in _marked(mark))]


def _marked(mark: ast.expr) -> list[str]:
    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.case":
        return [ast.literal_eval(argument) for argument in mark.args]
    return []


def status(case: str, tests: Mapping[str, list[str]]) -> str:
    """What is to be said of a case; raises LookupError when nobody shows it and nothing says why."""
    if case in tests:
        return f"met; {APART[case]}" if case in APART else "met"
    if case in NOT_BUILT:
        return f"not built yet: {NOT_BUILT[case]}"
    raise LookupError(f"no test shows {case}, and docs/generator/cases.py does not say what it waits for")


def parts() -> dict[str, str]:
    """All cases by kind, and how many of them are met."""
    tests = shown()
    if strangers := sorted(tests.keys() - {case.id for case in CASES}):
        raise LookupError(f"tests name cases that docs/generator/cases.py does not have: {strangers}")
    rows: dict[str, list[list[str]]] = {kind: [] for kind in TITLES}
    for case in CASES:
        names = "<br>".join(code(name.removeprefix("src/relet/testing/")) for name in tests.get(case.id, []))
        rows[case.id[:2]].append([case.id, case.text, names, status(case.id, tests)])
    met = sum(case.id in tests for case in CASES)
    tables = [
        f"## {TITLES[kind]}\n\n{table(['case', 'what', 'tests', 'status'], found)}" for kind, found in rows.items()
    ]
    return {"fault cases": "\n\n".join([f"{met} of {len(CASES)} cases are met.", *tables])}
