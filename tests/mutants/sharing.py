"""Mutants of what the engine does for many at once: shared commits, and requests by statements of its own."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import CONFORMANCE, STORE, Mutant

SHARING: Final = (
    Mutant(
        "the engine's own statement for renewals adds to what is left",
        ("P9",),
        "store/sqlite/rows.sql",
        "    expires_ms = max(expires_ms, :now_ms + coalesce(:ttl_ms, ttl_ms)), beat_ms = :now_ms",
        "    expires_ms = expires_ms + coalesce(:ttl_ms, ttl_ms), beat_ms = :now_ms",
        f"{CONFORMANCE}/test_renew.py::test_renewing_often_adds_nothing_up",
    ),
    Mutant(
        "the engine's own statement for renewals moves the end back",
        ("P3",),
        "store/sqlite/rows.sql",
        "    expires_ms = max(expires_ms, :now_ms + coalesce(:ttl_ms, ttl_ms)), beat_ms = :now_ms",
        "    expires_ms = :now_ms + coalesce(:ttl_ms, ttl_ms), beat_ms = :now_ms",
        f"{CONFORMANCE}/test_renew.py::test_a_renewal_never_moves_the_end_back",
    ),
    Mutant(
        "of many results those of unproven handles are taken too",
        ("P2",),
        "store/complete_at_once.py",
        "not all_proven(tx.run.secret, [item.handle for item in completions]) or ",
        "",
        f"{STORE}/test_many_at_once.py::test_of_many_the_one_whose_secret_is_wrong_is_refused_alone",
    ),
    Mutant(
        "of many results one is taken at the very end of its lease",
        ("P4",),
        "store/sqlite/statements.sql",
        "l.cancelling = 0 AND l.expires_ms > :now_ms\n    AND t.state = 'leased'",
        "l.cancelling = 0 AND l.expires_ms >= :now_ms\n    AND t.state = 'leased'",
        f"{STORE}/test_many_at_once.py::test_one_that_is_not_like_the_others_is_judged_by_the_rule",
    ),
    Mutant(
        "of many tasks one is granted although its key is busy",
        ("fairness",),
        "store/claim_at_once.py",
        "if task.token == 0 and task.exclusive is None:",
        "if task.token == 0:",
        f"{STORE}/test_many_at_once.py::test_many_together_are_answered_as_by_the_rule",
    ),
    Mutant(
        "what a member of a shared commit raises does not undo what it wrote",
        ("P13",),
        "store/sqlite/group.py",
        'cursor.execute("ROLLBACK TO member; RELEASE member")',
        'cursor.execute("RELEASE member")',
        f"{STORE}/test_group.py::test_a_member_that_raises_is_undone_alone",
    ),
    Mutant(
        "members of a commit that had no answer are done again",
        ("P13",),
        "store/sqlite/lane.py",
        "        fate = Fate.UNKNOWN\n",
        "",
        f"{STORE}/test_group.py::test_a_commit_that_has_no_answer_is_an_unknown_outcome_for_all",
    ),
)
