"""A task of five steps, killed around each commit and in the middle of each step: it goes on from there."""

import pytest

from tests.processes.whole import is_whole

pytestmark = pytest.mark.faults

STEPS = 5
NUMBERS = range(1, STEPS + 1)
BOUNDARIES = [f"{when}:keep_step:{n}" for n in NUMBERS for when in ("before", "after")]
MIDDLES = [f"step {n}" for n in NUMBERS]


@pytest.mark.parametrize("point", ["before:complete", "after:complete", *BOUNDARIES, *MIDDLES])
def test_each_step_is_kept_once_in_order_and_only_the_one_that_was_under_way_is_called_again(
    steered, outside, tmp_path, point
):
    task = steered.submit("work", kind="steps")
    outside.killed(point)
    assert is_whole(steered)
    kept = len(steered.steps(task.id))
    assert outside.settle(task).result == [n * n for n in NUMBERS]
    stepped = [one.detail["slot"] for one in steered.history(task.id) if one.kind == "stepped"]
    assert stepped == [f"#{n}" for n in NUMBERS]
    calls = [int(line) for line in (tmp_path / "calls").read_text().split()]
    called_before = min(kept + (not point.startswith("after")), STEPS) if "step" in point else STEPS
    assert calls == [*range(1, called_before + 1), *range(kept + 1, STEPS + 1)]
    assert is_whole(steered)


def test_killed_in_the_middle_of_every_step_in_turn_it_ends_right(steered, outside, tmp_path):
    task = steered.submit("work", kind="steps")
    for point in MIDDLES:
        outside.killed(point)
        steered.clock.advance("61s")
    assert outside.settle(task).result == [n * n for n in NUMBERS]
    calls = [int(line) for line in (tmp_path / "calls").read_text().split()]
    assert calls == [n for n in NUMBERS for _ in "12"]
    assert steered.task(task.id).losses == STEPS
