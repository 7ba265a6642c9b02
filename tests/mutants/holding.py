"""Mutants of tokens, secrets and marks: who may write."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import CONFORMANCE, STORE, Mutant

HOLDING: Final = (
    Mutant(
        "the token is not checked: any lease of the task will do",
        ("P2",),
        "core/rules/guard.py",
        "    reason = lost_reason(lease, task, at, even_cancelled=even_cancelled)\n    if reason is None:\n"
        "        if is_strange(tx, lease):\n            await tx.loosen_lease(lease.token)\n        return held\n",
        "    current = await tx.find_lease(task.token) or lease\n"
        "    reason = lost_reason(current, task, at, even_cancelled=even_cancelled)\n    if reason is None:\n"
        "        return held._replace(lease=current)\n",
        f"{CONFORMANCE}/test_claim.py::test_the_same_holder_gets_another_token_and_its_old_one_is_refused",
    ),
    Mutant(
        "the holder's name is trusted instead of the token",
        ("P2",),
        "core/rules/guard.py",
        "    reason = lost_reason(lease, task, at, even_cancelled=even_cancelled)\n    if reason is None:\n"
        "        if is_strange(tx, lease):\n            await tx.loosen_lease(lease.token)\n        return held\n",
        "    current = await tx.find_lease(task.token) or lease\n"
        "    judged = current if current.holder == lease.holder else lease\n"
        "    reason = lost_reason(judged, task, at, even_cancelled=even_cancelled)\n    if reason is None:\n"
        "        return held._replace(lease=judged)\n",
        f"{CONFORMANCE}/test_claim.py::test_the_same_holder_gets_another_token_and_its_old_one_is_refused",
    ),
    Mutant(
        "tokens are counted from what is in the register, and restart when it is emptied",
        ("P1",),
        "store/sqlite/migrations/0001_first.sql",
        "WHEN OLD.token > (SELECT epoch",
        "WHEN OLD.token < 0 AND OLD.token > (SELECT epoch",
        "tests/store/test_tokens.py::test_tokens_go_on_when_every_row_was_deleted",
    ),
    Mutant(
        "an inner block ends the outer heartbeat",
        ("long work",),
        "client/keeper.py",
        "if blocks > 1 and belief.ended is None",
        "if blocks > 99 and belief.ended is None",
        "tests/client/test_left_and_nested.py::test_an_inner_block_leaves_the_outer_heartbeat",
    ),
    Mutant(
        "a store that is away is taken for a failure of the work",
        ("attempts",),
        "client/blocking_lease.py",
        "isinstance(raised, Exception) and not is_store_away(raised)",
        "isinstance(raised, Exception)",
        "tests/client/test_left_and_nested.py::test_a_store_that_is_away_costs_no_attempt",
    ),
    Mutant(
        "the task that a handle names is not compared",
        ("P2",),
        "store/secrets.py",
        ' + task_id.encode("utf-8", "surrogatepass")',
        "",
        f"{CONFORMANCE}/test_guard.py::test_a_handle_that_was_never_given_out_proves_nothing",
    ),
    Mutant(
        "the secret is not compared",
        ("P2",),
        "core/rules/guard.py",
        "    return hmac.compare_digest(tx.secret(handle.token, handle.task_id).encode(), handle.secret.encode())",
        "    return bool(tx.secret(handle.token, handle.task_id))",
        f"{CONFORMANCE}/test_guard.py::test_a_handle_that_was_never_given_out_proves_nothing",
    ),
    Mutant(
        "a refused verb leaves its mark on the task",
        ("P2",),
        "core/rules/guard.py",
        "    return refuse(tx, lease, task, at, reason, kept=ending.kept if ending else None)",
        "    task.updated_wall_ms += 1\n    await tx.update_task(task)\n"
        "    return refuse(tx, lease, task, at, reason, kept=ending.kept if ending else None)",
        f"{CONFORMANCE}/test_guard.py::test_a_lost_lease_is_refused_with_its_reason_and_changes_nothing",
    ),
    Mutant(
        "after a restore tokens go on in the old epoch",
        ("P1",),
        "store/sqlite/identity.py",
        "        return Mark(epoch, 0), Mark(epoch, 0)",
        "        return (mark, mark) if epoch else (issued, mark)",
        f"{STORE}/test_tokens.py::test_after_a_restore_every_token_is_above_all_that_were_ever_issued",
    ),
    Mutant(
        "whoever opens a closed store first goes on inside the block",
        ("P1",),
        "store/sqlite/identity.py",
        "        if known == mark:\n            return mark, mark",
        "        if known == mark:\n            return issued, mark",
        f"{STORE}/test_tokens.py::test_after_a_restore_every_token_is_above_all_that_were_ever_issued",
    ),
    Mutant(
        "the mark of tokens is not synced before they are used",
        ("P1", "P7"),
        "store/sqlite/marks.py",
        "                os.fsync(file.fileno())\n",
        "",
        f"{STORE}/test_tokens.py::test_the_mark_is_on_disk_before_a_token_of_its_block_is_used",
    ),
)
