"""Over which kinds of servers a test runs, by what the run is set to."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from tests.postgres_suites import matrix

FIRST, *OTHERS = [*matrix.ROUTES, "postgres-awaiting"]
NAMES = [f"test_{n}" for n in range(100)]


class Item:
    """A test over a route, between other parameters of its own."""

    def __init__(self, name, route):
        self.nodeid = f"tests/postgres_suites/{name}[before-{route}-postgresql://host]"
        self.callspec = SimpleNamespace(params={"url": route, "given": "postgresql://host", "n": 1})


@pytest.fixture
def chosen(monkeypatch):
    """The routes of each test that a run of this kind takes; every suite's conftest chooses, one after the other."""

    def chosen(said, names=NAMES, routes=(FIRST, *OTHERS)):
        monkeypatch.setattr(matrix, "MATRIX", said.split(","))
        monkeypatch.setattr(matrix, "RUNS_ALL", said == "all")
        items = [Item(name, route) for name in names for route in routes]
        for _ in range(2):
            matrix.pytest_collection_modifyitems(Mock(), items)
        return {name: [matrix.route_of(item) for item in items if f"/{name}[" in item.nodeid] for name in names}

    return chosen


def test_each_test_runs_over_18_and_over_one_other_and_all_others_have_their_turn(chosen):
    found = list(chosen("one").values())
    assert {(len(routes), routes[0]) for routes in found} == {(2, FIRST)}
    assert {routes[1] for routes in found} == set(OTHERS)


def test_a_quick_run_takes_each_test_over_one_route_and_uses_all(chosen):
    found = list(chosen("quick").values())
    assert {len(routes) for routes in found} == {1}
    assert {routes[0] for routes in found} == {FIRST, *OTHERS}


def test_all_are_run_and_those_that_are_named(chosen):
    assert chosen("all")["test_1"] == [FIRST, *OTHERS]
    assert chosen("postgres-15,postgres-bare")["test_1"] == ["postgres-15", "postgres-bare"]


@pytest.mark.parametrize("said", ["one", "quick"])
def test_a_route_that_was_asked_for_alone_is_run(chosen, said):
    assert chosen(said, ["test_1"], ["postgres-bare"]) == {"test_1": ["postgres-bare"]}


def test_a_test_without_routes_is_run(chosen):
    assert chosen("quick", ["test_1"], ["sqlite", "postgresql://host"])["test_1"] == [None, None]
