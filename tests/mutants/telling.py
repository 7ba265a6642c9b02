"""Mutants of figures, findings, advice and log lines."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import CONFORMANCE, Mutant

TELLING: Final = (
    Mutant(
        "an expired lease that nobody takes back is found only after a whole ttl",
        ("telling",),
        "store/sqlite/figures.sql",
        "WHERE l.ended IS NULL AND l.expires_ms + l.ttl_ms / 2 <= :now_ms",
        "WHERE l.ended IS NULL AND l.expires_ms + l.ttl_ms <= :now_ms",
        "tests/cli/test_doctor.py::test_when_nobody_sweeps_it_names_the_oldest_expired_lease_within_two_ttls",
    ),
    Mutant(
        "figures count rows, and not live leases",
        ("telling",),
        "store/sqlite/figures.sql",
        "SELECT t.queue, count(*), sum(l.expires_ms > :now_ms),",
        "SELECT t.queue, count(*), count(*),",
        f"{CONFORMANCE}/test_inspect.py::test_expired_leases_are_counted_as_lapsed_until_taken_back",
    ),
    Mutant(
        "a page of tasks sorts all of them",
        ("telling",),
        "store/sqlite/rows.sql",
        "FROM tasks t NOT INDEXED JOIN inputs",
        "FROM tasks t JOIN inputs",
        "tests/store/test_figures.py::test_a_look_does_not_read_what_has_finished",
    ),
    Mutant(
        "a renewal that came late is not noted",
        ("telling",),
        "core/rules/renew.py",
        "            if left_ms < lease.ttl_ms * limits.LATE_SHARE and isinstance(answer, Renewed):",
        "            if left_ms < 0 and isinstance(answer, Renewed):",
        f"{CONFORMANCE}/test_advise.py::test_a_renewal_that_came_late_lengthens_the_ttl",
    ),
    Mutant(
        "a kind that no worker has a handler for is passed over",
        ("telling",),
        "core/doctor/work_checks.py",
        "    if any(claim.kind == one.kind and claim.last_wall_ms >= one.ready_wall_ms for claim in claims):",
        "    if any(claim.last_wall_ms >= one.ready_wall_ms for claim in claims):",
        "tests/core/test_doctor.py::test_what_is_amiss_is_found_with_its_evidence_and_its_fix",
    ),
    Mutant(
        "a queue that its rate holds back is said to have no worker",
        ("telling",),
        "core/doctor/work_checks.py",
        "(queue.paused or queue.held_back is not None)",
        "queue.paused",
        "tests/core/test_doctor.py::test_what_is_not_amiss_is_not_found",
    ),
    Mutant(
        "a cap is advised that cuts off what finishes",
        ("telling",),
        "core/advice.py",
        "int(next((step for step in STEPS_MS if step >= ms), days_ms))",
        "min(limits.DAY_MS, int(next((step for step in STEPS_MS if step >= ms), days_ms)))",
        "tests/core/test_advice.py::test_no_cap_is_advised_that_would_have_cut_off_what_finished",
    ),
    Mutant(
        "doctor looks at one tenant",
        ("telling",),
        "store/conditions.py",
        "if facts.alone or not names else",
        "if names or not names else",
        "tests/cli/test_doctor.py::test_the_work_of_all_tenants_is_looked_at_and_one_alone_is_named_as_one",
    ),
    Mutant(
        "two copies of SQLite in a process count as one",
        ("telling",),
        "store/sqlite/openers.py",
        "engines = max(offsets.values(), default=0)",
        "engines = min(offsets.values(), default=0) and 1",
        "tests/store/test_examine.py::test_two_copies_of_sqlite_in_one_process_are_found",
    ),
    Mutant(
        "a log line leaves out the reason",
        ("telling",),
        "client/telling.py",
        "reason_of(reason) if isinstance(reason, Error) else str(reason)",
        '"-"',
        "tests/worker/test_log_lines.py::test_a_takeover_names_who_had_it_and_why",
    ),
    Mutant(
        "a worker that ends gives back without saying so",
        ("telling",),
        "core/rules/release.py",
        "    why = None if ask.why is GivenBack.RELEASED else str(ask.why)",
        "    why = None",
        "tests/cli/test_looking.py::test_ob_01_reasons_are_told_apart",
    ),
)
