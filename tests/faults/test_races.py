"""Hundreds of rounds of two processes at one instant: one wins, the other gets a plain answer."""

import pytest

from tests.processes.races import cancel_against_claim, claim_against_claim, completion_against_sweep

pytestmark = pytest.mark.faults


def test_cr_01_one_ready_task_has_one_winner_in_300_rounds(steered, actor):
    winners = claim_against_claim(steered, [actor(), actor()], rounds=300)
    assert len(winners) == 2


def test_zc_01_a_completion_at_expiry_is_taken_or_refused_and_never_both_in_500_rounds(steered, actor):
    ends = completion_against_sweep(steered, actor(), actor(), actor(), rounds=500)
    assert set(ends) == {"done", "failed"}


def test_cs_01_a_cancelled_task_never_started_or_was_told_in_500_rounds(steered, actor):
    ends = cancel_against_claim(steered, actor(), actor(), rounds=500)
    assert set(ends) == {"never started", "started and told"}
