"""The crash kit, whose holders are at a service: each thing at each of their requests, and what is left is judged."""

import sys
import tempfile
from pathlib import Path

import pytest

from relet.testing import CrashTestFailed, crash_test
from relet.testing.crash.plan import AT_COMMITS
from tests.server.beside import Services

pytestmark = pytest.mark.faults
PROGRAMS = Path(__file__).parents[2] / "crash" / "programs"
AT_SERVICE = "by_service:by_service"
OFTEN = ("kill-after", "freeze-before", "drop")


@pytest.fixture(autouse=True)
def runs(monkeypatch):
    """Services over the stores of the runs, which are in folders of their own."""
    monkeypatch.syspath_prepend(PROGRAMS)
    with Services(tempfile.gettempdir()) as services:
        monkeypatch.setenv("CRASH_SERVICES", services.url)
        yield services
    for module in ("good", "broken", "by_service"):
        sys.modules.pop(module, None)


def ends_right(points, runs, seed, kind="far", **options):
    import good

    report = crash_test(
        "good:app", kind, {"topic": "grain"}, points=points, runs=runs, seed=seed, jobs=2, wrap=AT_SERVICE,
        verify=good.sent_once, same_result=True, **options,
    )  # fmt: skip
    assert report.ok
    assert report.waited == []
    assert report.struck >= report.runs > 0
    return report


FAR = {"answers": {"publish": "accept"}, "signals": {"go": 1}}


@pytest.mark.parametrize(
    "action", [pytest.param(one, marks=() if one in OFTEN else pytest.mark.long) for one in AT_COMMITS]
)
def test_a_task_by_a_service_ends_right_whatever_is_done_at_each_of_its_requests(action, monkeypatch, runs):
    monkeypatch.setattr("relet.testing.crash.plan.AT_COMMITS", (action,))
    ends_right("commits", runs=100, seed=1, kind="short")
    assert {"v1/claim", "v1/keep_step", "v1/start_effect", "v1/end_effect", "v1/complete"} <= runs.asked


@pytest.mark.long
@pytest.mark.parametrize("action", AT_COMMITS)
def test_a_long_task_by_a_service_ends_right_whatever_is_done_at_each_of_its_requests(action, monkeypatch):
    monkeypatch.setattr("relet.testing.crash.plan.AT_COMMITS", (action,))
    ends_right("commits", runs=12, seed=1, **FAR)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_a_long_task_by_a_service_ends_right_whatever_is_done_at_random(seed):
    ends_right("random", runs=10, seed=seed, **FAR)


def test_a_mistake_of_a_program_that_is_at_a_service_is_found():
    with pytest.raises(CrashTestFailed) as failed:
        crash_test("broken:app", "catches_everything", seed=7, point="drop:2", same_result=True, wrap=AT_SERVICE)
    assert failed.value.report.findings[0].rule == "same_result"
