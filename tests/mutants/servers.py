"""Mutants of the PostgreSQL engine: of what it does in place of one write lock and of one machine's clock."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

HERE: Final = "tests/store_postgres"
POSTGRES: Final = "store/postgres"

SERVERS: Final = (
    Mutant(
        "the clock is that of the transaction's start",
        ("P4", "P2"),
        f"{POSTGRES}/texts.py",
        '"floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"',
        '"floor(extract(epoch FROM now()) * 1000)::bigint"',
        f"{HERE}/test_locks.py::test_a_verb_that_waited_for_its_row_past_the_end_is_refused",
    ),
    Mutant(
        "a restart of the server is not noticed",
        ("P3",),
        f"{POSTGRES}/runner.py",
        "            if not is_same_run:\n",
        "            if is_same_run is None:\n",
        f"{HERE}/test_outage.py::test_a_restart_extends_what_was_held_and_tokens_go_on",
    ),
    Mutant(
        "an outage extends nothing",
        ("P3",),
        f"{POSTGRES}/outage.py",
        '        one("extend_all_open", now_ms=right_ms)\n',
        "",
        f"{HERE}/test_outage.py::test_a_lease_whose_time_ran_out_while_nobody_could_ask_is_live_for_a_ttl",
    ),
    Mutant(
        "an older copy of the store gives out its tokens again",
        ("P1",),
        f"{POSTGRES}/outage.py",
        '            one("restart_tokens", n=n)\n',
        "            epoch -= 1\n",
        f"{HERE}/test_outage.py::test_pg_08_a_dump_put_back_into_another_database_goes_on_above_all_tokens",
    ),
    Mutant(
        "a step of the server's clock is not noticed",
        ("P3",),
        f"{POSTGRES}/clock.py",
        "            if is_ahead or is_behind:\n",
        "            if is_ahead and is_behind:\n",
        f"{HERE}/test_clock_steps.py::test_a_lease_outlives_a_step_and_ends_in_its_time",
    ),
    Mutant(
        "a commit without an answer is taken for undone",
        ("P13",),
        f"{POSTGRES}/transact.py",
        "    if committing and (is_broken or wrong.sqlstate is None):\n",
        "    if committing and is_broken is None:\n",
        f"{HERE}/test_commits.py::test_a_verb_that_must_not_be_repeated_says_that_its_outcome_is_unknown",
    ),
    Mutant(
        "one statement completes what has expired",
        ("P2", "P4"),
        f"{POSTGRES}/hot.sql",
        "    WHERE j.expires_ms > j.now_ms AND j.beat_ms <= j.now_ms),",
        "    WHERE j.beat_ms <= j.now_ms),",
        f"{HERE}/test_at_once.py::test_one_by_one_they_are_answered_as_by_the_rule",
    ),
    Mutant(
        "a renewal by one statement is told by its token alone",
        ("P2",),
        f"{POSTGRES}/at_once.py",
        "    told = {id(one): made[left[one.token]] for one in sure if one.token in left}\n",
        "    told = {id(one): made[left[one.token]] for one in ask.handles if one.token in left}\n",
        f"{HERE}/test_at_once.py::test_a_forged_handle_is_not_renewed_along_with_the_true_one",
    ),
    Mutant(
        "who reads the feed passes what is not committed yet",
        ("history",),
        f"{POSTGRES}/tx.py",
        "            return [event for event in events if event.seq < gap[0]]\n",
        "            return events\n",
        f"{HERE}/test_locks.py::test_the_feed_stops_before_a_number_that_may_still_come",
    ),
    Mutant(
        "shares begin beside a submit that has not seen them",
        ("fairness",),
        f"{POSTGRES}/tx.py",
        '            await self.run.do("lock_all_tasks", {})\n',
        "",
        f"{HERE}/test_locks.py::test_a_task_that_is_submitted_while_shares_begin_is_not_overlooked",
    ),
    Mutant(
        "a row that is locked counts as lost",
        ("P5", "long work"),
        f"{POSTGRES}/at_once.py",
        "    return known - free\n",
        "    return set()\n",
        f"{HERE}/test_deadlocks.py::test_a_renewal_that_skips_a_row_reports_that_row_and_no_other",
    ),
)
