"""Backoff and jitter: bounded for any attempt, never below what was asked for."""

import pytest

from relet.core import limits
from relet.core.model import FailReason, Instants
from relet.core.rules.settle import backoff_ms, fraction, jittered, overdue, schedule, verdict
from tests.core.rows import lease_row, task_row

AT = Instants(5_000, 1_800_000_000_000)
HOUR_MS = 3_600_000


@pytest.mark.case("RD-04")
def test_the_backoff_of_any_attempt_is_bounded_by_its_cap():
    waits = [backoff_ms(n, limits.BACKOFF_BASE_MS, limits.BACKOFF_CAP_MS) for n in range(1, 5_001)]
    assert waits[:9] == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000]
    assert set(waits[9:]) == {limits.BACKOFF_CAP_MS}


@pytest.mark.parametrize("base_ms", [0, -1])
def test_without_a_base_there_is_no_wait(base_ms):
    assert backoff_ms(7, base_ms, 1_000) == 0


def test_the_cap_holds_even_below_the_base():
    assert backoff_ms(1, 1_000, 300) == 300


def test_jitter_comes_after_the_delay_that_was_asked_for_and_adds_a_fifth_at_most():
    waits = [jittered(60_000, seed) for seed in range(1, 2_000)]
    assert min(waits) >= 60_000
    assert max(waits) < 72_000
    assert len(set(waits)) > 1_900, "spread, not in step"
    assert jittered(0, 7) == 0


def test_a_fraction_is_the_same_for_the_same_seed_and_lies_below_one():
    values = [fraction(seed) for seed in range(10_000)]
    assert values == [fraction(seed) for seed in range(10_000)]
    assert all(0 <= value < 1 for value in values)
    assert 0.45 < sum(values) / len(values) < 0.55


@pytest.mark.parametrize(
    ("delay_ms", "delayed", "due_ms", "due_wall_ms"),
    [
        (0, False, None, None),
        (1, True, 5_001, None),
        (HOUR_MS, True, 5_000 + HOUR_MS, None),
        (HOUR_MS + 1, True, None, 1_800_000_000_000 + HOUR_MS + 1),
    ],
)
def test_delays_up_to_an_hour_are_store_time_and_longer_ones_wall_time(delay_ms, delayed, due_ms, due_wall_ms):
    task = task_row(delayed=True, due_ms=1, due_wall_ms=2)
    schedule(task, AT, delay_ms)
    assert (task.delayed, task.due_ms, task.due_wall_ms) == (delayed, due_ms, due_wall_ms)


@pytest.mark.parametrize(
    ("failures", "losses", "streak", "deadline_wall_ms", "reason"),
    [
        (0, 0, 0, None, None),
        (4, 0, 0, None, None),
        (5, 0, 0, None, FailReason.ATTEMPTS),
        (3, 2, 2, None, FailReason.ATTEMPTS),
        (9, 9, 9, 0, FailReason.ATTEMPTS),
        (0, 2, 2, None, None),
        (0, 3, 3, None, FailReason.LOSSES),
        (0, 3, 0, None, None),
        (0, 0, 0, AT.wall_ms + 1, None),
        (0, 0, 0, AT.wall_ms, FailReason.DEADLINE),
    ],
)
def test_a_task_fails_by_attempts_then_losses_then_deadline(failures, losses, streak, deadline_wall_ms, reason):
    task = task_row(failures=failures, losses=losses, streak=streak, deadline_wall_ms=deadline_wall_ms)
    assert verdict(task, lease_row(max_attempts=5, max_losses=3), AT) is reason


def test_a_deadline_has_come_at_its_very_instant():
    assert not overdue(task_row(deadline_wall_ms=AT.wall_ms + 1), AT)
    assert overdue(task_row(deadline_wall_ms=AT.wall_ms), AT)
    assert not overdue(task_row(deadline_wall_ms=None), AT)
