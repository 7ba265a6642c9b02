"""The crash kit on a good app that uses every part of durable work: each thing at each commit, and many at random."""

import sys
from pathlib import Path

import pytest

from relet.testing import crash_test
from relet.testing.crash.plan import AT_COMMITS

pytestmark = pytest.mark.faults
NOT_AT = {
    "kill-before": "claim", "away": "claim", "freeze-before": ("claim", "transaction"), "repeat": "transaction",
}  # fmt: skip
PROGRAMS = Path(__file__).parents[1] / "crash" / "programs"


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    monkeypatch.syspath_prepend(PROGRAMS)
    yield
    sys.modules.pop("good", None)


@pytest.mark.parametrize("action", AT_COMMITS)
def test_a_long_task_ends_right_whatever_is_done_at_each_of_its_commits(action, monkeypatch):
    monkeypatch.setattr("relet.testing.crash.plan.AT_COMMITS", (action,))
    report = ends_right("commits", runs=100, seed=1)
    assert report.runs == report.struck
    assert report.points == sum(not one.startswith(NOT_AT.get(action, "-")) for one in report.commits)


@pytest.mark.parametrize("seed", range(5))
def test_a_long_task_ends_right_whatever_is_done_at_random(seed):
    ends_right("random", runs=20, seed=seed)


def ends_right(points, runs, seed):
    import good

    report = crash_test(
        "good:app", "long", {"topic": "grain"}, points=points, runs=runs, seed=seed, jobs=2,
        answers={"publish": "accept"}, signals={"go": 1}, verify=good.sent_once, same_result=True,
    )  # fmt: skip
    assert report.ok
    assert report.waited == []
    return report
