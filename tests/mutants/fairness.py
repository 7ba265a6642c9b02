"""Mutants of fair turns, limits and storms."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import CONFORMANCE, CORE, WORKER, Mutant

FAIRNESS: Final = (
    Mutant(
        "a limit counts what has expired as gone before it is recorded",
        ("fairness",),
        "core/rules/claim.py",
        "    if ahead.lapsed:\n        await close_all_lapsed(tx)\n    n = await room",
        "    n = await room",
        f"{CORE}/test_room.py::TestConcurrency::test_a_crowd_of_lapses_frees_every_place_in_one_claim",
    ),
    Mutant(
        "a claim at the limit grants one more",
        ("fairness",),
        "core/rules/room.py",
        "        wanted = min(wanted, left)",
        "        wanted = min(wanted, left + 1)",
        f"{CONFORMANCE}/test_bounds.py::test_a_limit_holds_for_all_claimers_together",
    ),
    Mutant(
        "leases from before the limit take no place",
        ("fairness",),
        "core/rules/set_queue.py",
        "        await tx.fill_places(row.name)",
        "        pass",
        f"{CORE}/test_room.py::TestConcurrency::test_leases_that_were_live_before_the_limit_are_counted",
    ),
    Mutant(
        "a task by its id passes by the limit of its share",
        ("fairness",),
        "core/rules/claim.py",
        "await room(tx, queue, at, 1) == 1 and await has_share_room(tx, queue, task)",
        "await room(tx, queue, at, 1) == 1",
        f"{CONFORMANCE}/test_bounds.py::test_each_share_has_its_own_limit",
    ),
    Mutant(
        "the share that was served is served again",
        ("fairness",),
        "core/rules/turns.py",
        "self._served, self._queue.last_share = True, task.share or WITHOUT_SHARE",
        "self._served = True",
        f"{CONFORMANCE}/test_shares.py::test_shares_take_turns_whoever_claims",
    ),
    Mutant(
        "a bucket is as full after each grant as before",
        ("fairness",),
        "core/rules/room.py",
        "        queue.full_us = _full_us(queue, at) + _apart_us(queue)",
        "        queue.full_us = _full_us(queue, at)",
        f"{CONFORMANCE}/test_bounds.py::test_a_rate_is_met_in_the_stores_time",
    ),
    Mutant(
        "a storm after a storm comes back with the first ones",
        ("fairness",),
        "core/rules/lapse.py",
        "        delay_ms += first_ms",
        "        delay_ms = first_ms",
        f"{CORE}/test_lapse.py::"
        "test_ts_03_of_400_that_lapse_in_one_second_no_second_gets_more_than_15_percent_and_none_is_given_up",
    ),
    Mutant(
        "a worker that found nothing claims again and again",
        ("rest",),
        "worker/lookout.py",
        "        if self.found_nothing and not along and not self._sees_work(",
        "        if self.found_nothing and not along and False and not self._sees_work(",
        f"{WORKER}/test_lookout.py::test_an_idle_worker_asks_for_no_lock_and_writes_nothing",
    ),
    Mutant(
        "a worker that is told of a commit does not look",
        ("rest",),
        "worker/lookout.py",
        "self._is_told = self._wait(self._watch) or self._is_told",
        "self._wait(self._watch)",
        f"{WORKER}/test_lookout.py::test_a_commit_of_somebody_else_wakes_it",
    ),
    Mutant(
        "a worker whose kinds are all at their limit does not rest",
        ("rest",),
        "worker/portions.py",
        "        return not self._limits or bool(self.open(running))",
        "        return True or bool(self.open(running))",
        f"{WORKER}/test_lookout.py::"
        "test_with_every_kind_at_its_limit_a_worker_rests_though_slots_are_free_and_tasks_are_left",
    ),
)
