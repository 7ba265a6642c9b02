"""The other tests with processes that are about holders, and not about the file: their programs are at a service."""

import pytest

from tests.faults.test_effects_killed import (  # noqa: F401 - they are run here over other fixtures
    test_a_frozen_holder_that_wakes_after_its_successor_leaves_evidence_and_moves_nothing,
    test_a_reply_that_is_dropped_is_not_taken_for_a_refusal,
    test_effects_of_every_contract_apply_once_under_50_kills_at_random_moments,
    test_killed_at_each_line_of_the_path_an_effect_applies_once_and_is_repeated_only_where_that_is_harmless,
)
from tests.faults.test_limits_killed import (  # noqa: F401 - as above
    test_under_kills_no_more_leases_are_open_than_the_limits_allow_and_they_are_used_in_full_again,
)
from tests.faults.test_self_fence import (  # noqa: F401 - as above
    test_p6_a_stopped_holders_last_good_check_is_before_the_lapse,
)
from tests.faults.test_steps_killed import (  # noqa: F401 - as above
    test_each_step_is_kept_once_in_order_and_only_the_one_that_was_under_way_is_called_again,
    test_killed_in_the_middle_of_every_step_in_turn_it_ends_right,
)
from tests.faults.test_storms import (  # noqa: F401 - as above
    test_ts_03_400_leases_that_lapse_at_once_are_taken_over_in_a_spread_and_each_task_is_done_once,
)
from tests.processes.crowd import work_through
from tests.processes.races import cancel_against_claim, claim_against_claim, completion_against_sweep
from tests.processes.test_killed_at_commit import (  # noqa: F401 - as above
    killed,
    test_killed_after_the_commit_of_a_completion_the_task_is_done_for_ever,
    test_killed_around_the_commit_of_a_submit_repeating_it_makes_one_task,
    test_killed_around_the_commit_of_fail_or_release_it_happened_or_did_not,
    test_killed_before_the_commit_of_a_completion_the_task_is_run_again,
    test_what_was_acknowledged_before_a_kill_at_any_moment_is_there,
)
from tests.processes.test_poison import (  # noqa: F401 - as above
    test_rd_01_losses_are_counted_and_after_the_last_one_the_task_is_a_dead_letter,
)
from tests.processes.test_rollout import (  # noqa: F401 - as above
    test_cs_06_a_second_signal_ends_it_at_once,
    test_cs_06_five_rollouts_in_a_row_cost_no_attempt_and_lose_no_progress,
    test_cs_06_past_the_grace_the_handler_is_stopped_and_its_lease_released,
)

pytestmark = [pytest.mark.faults, pytest.mark.long]
ROUNDS = 100


def test_programs_on_the_clock_of_a_test_are_at_the_service(steered, actor, services):
    steered.submit("work")
    actor()("claim", "work")
    assert "v1/claim" in services.asked


def test_cr_01_one_ready_task_has_one_winner(steered, actor):
    assert len(claim_against_claim(steered, [actor(), actor()], ROUNDS)) == 2


def test_zc_01_a_completion_at_expiry_is_taken_or_refused_and_never_both(steered, actor):
    assert set(completion_against_sweep(steered, actor(), actor(), actor(), ROUNDS)) == {"done", "failed"}


def test_cs_01_a_cancelled_task_never_started_or_was_told(steered, actor):
    assert set(cancel_against_claim(steered, actor(), actor(), ROUNDS)) == {"never started", "started and told"}


def test_sq_01_four_processes_of_a_hundred_cycles_each_are_all_served(db, start, url):
    assert all(work_through(db, start, url, 4, 4 * 100))
