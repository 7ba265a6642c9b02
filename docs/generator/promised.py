"""The numbered promises: the tests that show each, and the mutants that break it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from docs.generator.faults import told
from tests.mutants import (
    durable,
    expiry,
    fairness,
    holding,
    processes,
    servers,
    service,
    sharing,
    storage,
    telling,
    upkeep,
)
from tests.mutants.mutant import PROMISES, Mutant

ROOT: Final = Path(__file__).parents[2]
CONFORMANCE: Final = Path("src/relet/testing/conformance")
MUTANTS: Final[dict[str, tuple[Mutant, ...]]] = {
    "holding": holding.HOLDING, "expiry": expiry.EXPIRY, "storage": storage.STORAGE, "durable": durable.WORK,
    "fairness": fairness.FAIRNESS, "sharing": sharing.SHARING, "telling": telling.TELLING, "upkeep": upkeep.UPKEEP,
    "processes": processes.PROCESSES, "servers": servers.SERVERS, "service": service.SERVICE,
}  # fmt: skip
"""By the file in tests/mutants that each stands in."""

SHOWN: Final[dict[str, tuple[str, ...]]] = {
    "P1": (
        "tests/faults/test_races.py::test_cr_01_one_ready_task_has_one_winner_in_300_rounds",
        "tests/faults/test_power_cut.py::test_nothing_that_was_told_is_lost_and_no_token_is_given_out_again",
        "tests/store/test_tokens.py::test_after_a_restore_every_token_is_above_all_that_were_ever_issued",
        "tests/model/test_explicit.py::test_the_promised_rules_hold_in_every_state",
        (
            "tests/store_postgres/test_outage.py"
            "::test_pg_08_a_dump_put_back_into_another_database_goes_on_above_all_tokens"
        ),
    ),
    "P2": (
        (
            "tests/faults/test_all_stopped.py"
            "::test_ec_10_of_all_that_is_sent_after_three_ttls_of_standing_still_nothing_lands"
        ),
        "tests/faults/test_races.py::test_zc_01_a_completion_at_expiry_is_taken_or_refused_and_never_both_in_500_rounds",
        "tests/conformance/test_guard.py::test_a_lost_lease_is_refused_with_its_reason_and_changes_nothing",
        "tests/model/test_machine.py::test_no_sequence_of_workers_crashes_and_clocks_breaks_a_promise",
        "tests/store_postgres/test_locks.py::test_a_verb_that_waited_for_its_row_past_the_end_is_refused",
    ),
    "P3": (
        "tests/faults/test_wall_clock.py::test_ec_03_a_worker_whose_wall_clock_is_stepped_keeps_its_lease",
        (
            "tests/store/test_reboot.py"
            "::test_after_a_reboot_whatever_is_not_recorded_as_ended_is_live_for_a_ttl_from_now"
        ),
        "tests/conformance/test_sweep.py::test_a_renewed_lease_is_not_swept_at_its_old_expiry",
        "tests/store_postgres/test_clock_steps.py::test_a_lease_outlives_a_step_and_ends_in_its_time",
    ),
    "P4": (
        "tests/conformance/test_claim.py::test_a_task_is_taken_over_at_the_instant_its_lease_expires_and_not_before",
        (
            "tests/conformance/test_guard.py"
            "::test_a_verb_is_refused_from_the_very_instant_of_expiry_though_nobody_else_claimed"
        ),
    ),
    "P5": (
        "tests/core/test_trust.py::test_lost_is_final_whatever_the_store_answers_later",
        "tests/store/test_commits.py::test_a_lapse_that_a_renewal_sees_is_on_disk_before_it_is_told",
        "tests/model/test_machine.py::test_no_sequence_of_workers_crashes_and_clocks_breaks_a_promise",
    ),
    "P6": (
        "tests/client/test_self_fence.py::test_p6_whenever_a_holder_trusts_its_lease_the_store_still_keeps_it",
        "tests/faults/test_self_fence.py::test_p6_a_stopped_holders_last_good_check_is_before_the_lapse",
    ),
    "P7": (
        "tests/faults/test_power_cut.py::test_nothing_that_was_told_is_lost_and_no_token_is_given_out_again",
        "tests/faults/test_power_cut.py::test_the_same_images_find_what_a_store_without_a_sync_at_each_commit_loses",
        "tests/processes/test_killed_at_commit.py::test_what_was_acknowledged_before_a_kill_at_any_moment_is_there",
    ),
    "P8": (
        "tests/fences/test_kit.py::test_an_older_holder_never_writes_after_a_newer_one_has_raised_the_fence",
        "tests/model/test_explicit.py::test_with_raise_before_read_the_same_bounds_are_clean",
    ),
    "P9": (
        "tests/processes/test_frozen.py::test_p9_a_killed_workers_task_can_be_claimed_once_its_ttl_is_over",
        "tests/processes/test_frozen.py::test_ts_01_two_workers_one_frozen_make_one_takeover",
        "tests/processes/test_death.py::test_a_killed_workers_task_is_taken_over_at_once_and_everybody_is_told_why",
        "tests/processes/test_killed_sweep.py::test_rd_10_a_claim_does_what_the_killed_sweeper_left",
    ),
    "P10": (
        (
            "tests/faults/test_effects_killed.py"
            "::test_killed_at_each_line_of_the_path_an_effect_applies_once_and_is_repeated_only_where_that_is_harmless"
        ),
        (
            "tests/durable/test_effects.py"
            "::test_an_effect_is_on_record_before_it_is_called_and_its_function_is_told_about_it"
        ),
    ),
    "P11": ("tests/conformance/test_effects.py::test_the_same_key_with_another_payload_is_refused_and_not_sent",),
    "P12": (
        "tests/worker/test_silence.py::test_p12_a_hung_handler_loses_its_lease_which_counts_and_is_said",
        "tests/processes/test_sidecar.py::test_p12_work_that_holds_the_gil_and_moves_nothing_is_let_go_of",
        "tests/processes/test_apart.py::test_p12_a_silent_child_is_let_go_of_and_one_that_moves_is_kept",
        (
            "tests/conformance/test_renew.py"
            "::test_a_renewal_is_cut_to_the_longest_hold_and_the_next_one_refused_as_capped"
        ),
    ),
    "P13": (
        "tests/store/test_io_errors.py::test_a_verb_whose_nth_write_or_sync_fails_has_happened_or_it_has_not",
        "tests/faults/test_disk_full.py::test_sq_10_a_full_disk_is_an_answer_and_passes",
        "tests/store/test_busy.py::test_what_a_transaction_raises_undoes_all_of_it",
        "tests/processes/test_killed_at_commit.py::test_a_writer_killed_in_its_transaction_keeps_nobody_out",
    ),
    "P15": (
        "tests/server/test_matrix.py::test_every_route_has_a_policy",
        "tests/server/test_matrix.py::test_nothing_is_done_for_who_shows_no_good_key",
        "tests/server/test_matrix.py::test_a_role_does_what_its_scopes_allow_and_nothing_else",
        "tests/server/test_matrix.py::test_nobody_speaks_websocket_with_it",
        "tests/server/test_tenants.py::test_what_is_another_tenants_is_as_if_it_did_not_exist",
        "tests/server/test_tenants.py::test_every_field_that_holds_an_id_is_looked_at",
    ),
    "P16": (
        "tests/server/test_tampered.py::test_what_somebody_put_into_a_column_runs_nothing_and_is_told_as_what_it_is",
        "tests/server/test_tampered.py::test_one_tampered_task_stands_in_nobodys_way",
    ),
}
"""By the number of a promise, the tests that show it, as `file::name`."""


def is_there(test: str, root: Path = ROOT) -> bool:
    """Is there a test of this name in this file; those of conformance stand in the suite that is shipped."""
    file, _, name = test.partition("::")
    places = [Path(file)]
    if file.startswith("tests/conformance/"):
        places.append(CONFORMANCE / Path(file).name.removeprefix("test_"))
    found = [root / place for place in places if (root / place).is_file()]
    return any(name == one for path in found for one, _ in told(path.read_text(encoding="utf-8")))


def parts(root: Path = ROOT) -> dict[str, str]:
    """All numbered promises. Raises LookupError where a test is not there, or one has no mutant."""
    lines: list[str] = []
    for promise, tests in SHOWN.items():
        if gone := [test for test in tests if not is_there(test, root)]:
            raise LookupError(f"{promise} is shown by what is not there: {gone}")
        lines += [f"#### {promise}: {PROMISES[promise]}", ""]
        lines += [f"- {_linked(test)}" for test in tests]
        mutants = [(file, one) for file, of_file in MUTANTS.items() for one in of_file if promise in one.promises]
        if not mutants:
            raise LookupError(f"{promise} has no mutant")
        for file, one in mutants:
            lines.append(f"- [mutant](../tests/mutants/{file}.py): *{one.name}*. Killed by {_linked(one.test)}")
        lines.append("")
    return {"numbered promises": "\n".join(lines)}


def _linked(test: str) -> str:
    file, *_, name = test.split("::")
    return f"[`{file}`](../{file}) `{name}`"
