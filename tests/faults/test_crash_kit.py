"""The crash kit on a good app that uses every part of durable work: each thing at each commit, and many at random."""

import sys
from pathlib import Path

import pytest

from relet.testing import crash_test

pytestmark = pytest.mark.faults
PROGRAMS = Path(__file__).parents[1] / "crash" / "programs"


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    monkeypatch.syspath_prepend(PROGRAMS)
    yield
    sys.modules.pop("good", None)


@pytest.mark.parametrize(("points", "runs"), [("commits", 1_000), ("random", 100)])
def test_a_long_task_ends_right_whatever_is_done_to_it(points, runs):
    import good

    report = crash_test(
        "good:app", "long", {"topic": "grain"}, points=points, runs=runs, seed=20_260_101, jobs=2,
        answers={"publish": "accept"}, signals={"go": 1}, verify=good.sent_once, same_result=True,
    )  # fmt: skip
    assert report.ok
    assert report.waited == []
    if points == "commits":
        assert report.points == len(report.commits)
        assert report.unreached == []
