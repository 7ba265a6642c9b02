"""The mutants: which promise, what is broken, and the named test that goes red."""

from __future__ import annotations

from typing import Final, NamedTuple

CONFORMANCE: Final = "tests/conformance"
CORE: Final = "tests/core"
GROUP: Final = "tests/store/test_group.py"
OWN: Final = "tests/store/test_own.py"
DURABLE: Final = "tests/durable"


class Mutant(NamedTuple):
    """One change of one file under src/relet, and the test that it must not survive."""

    name: str
    file: str
    old: str
    new: str
    test: str


MUTANTS: Final = (
    Mutant(
        "a lease is still held at the very instant of its expiry",
        "core/rules/guard.py",
        "    if lease.ended is None and at.now_ms < lease.expires_ms:\n        return None",
        "    if lease.ended is None and at.now_ms <= lease.expires_ms:\n        return None",
        f"{CONFORMANCE}/test_guard.py::test_a_verb_is_refused_from_the_very_instant_of_expiry_though_nobody_else_claimed",
    ),
    Mutant(
        "a lease lapses only after the instant of its expiry",
        "core/rules/lapse.py",
        "        if lease.expires_ms <= at.now_ms:",
        "        if lease.expires_ms < at.now_ms:",
        f"{CONFORMANCE}/test_claim.py::test_a_task_is_taken_over_at_the_instant_its_lease_expires_and_not_before",
    ),
    Mutant(
        "the clock is read before the lock",
        "store/sqlite/engine.py",
        "        burnt = False\n",
        "        burnt = False\n        early = self.identity.read_clock()\n"
        "        self.identity.read_clock = lambda: early\n",
        f"{CONFORMANCE}/test_contention.py::test_a_lease_that_expires_while_its_verb_waits_for_the_store_is_lost",
    ),
    Mutant(
        "the token is not checked: any lease of the task will do",
        "core/rules/guard.py",
        "    reason = lost_reason(lease, task, at, even_cancelled=even_cancelled)\n    if reason is None:\n"
        "        return held\n",
        "    current = await tx.find_lease(task.token) or lease\n"
        "    reason = lost_reason(current, task, at, even_cancelled=even_cancelled)\n    if reason is None:\n"
        "        return held._replace(lease=current)\n",
        f"{CONFORMANCE}/test_claim.py::test_the_same_holder_gets_another_token_and_its_old_one_is_refused",
    ),
    Mutant(
        "the holder's name is trusted instead of the token",
        "core/rules/guard.py",
        "    reason = lost_reason(lease, task, at, even_cancelled=even_cancelled)\n    if reason is None:\n"
        "        return held\n",
        "    current = await tx.find_lease(task.token) or lease\n"
        "    judged = current if current.holder == lease.holder else lease\n"
        "    reason = lost_reason(judged, task, at, even_cancelled=even_cancelled)\n    if reason is None:\n"
        "        return held._replace(lease=judged)\n",
        f"{CONFORMANCE}/test_claim.py::test_the_same_holder_gets_another_token_and_its_old_one_is_refused",
    ),
    Mutant(
        "tokens are counted from what is in the register, and restart when it is emptied",
        "store/sqlite/migrations/0001_first.sql",
        "WHEN OLD.token > (SELECT epoch",
        "WHEN OLD.token < 0 AND OLD.token > (SELECT epoch",
        "tests/store/test_tokens.py::test_tokens_go_on_when_every_row_was_deleted",
    ),
    Mutant(
        "a sweep acts on what it was told, without judging again under its lock",
        "core/rules/lapse.py",
        "    alive = [lease for lease in leases if at.now_ms < lease.expires_ms]\n",
        "    alive: list[LeaseRow] = []\n    for lease in leases:\n"
        "        lease.expires_ms = min(lease.expires_ms, at.now_ms)\n",
        f"{CONFORMANCE}/test_sweep.py::test_a_renewed_lease_is_not_swept_at_its_old_expiry",
    ),
    Mutant(
        "an expiry that was observed is not written down",
        "core/rules/guard.py",
        "        await lapse(tx, lease, task, at)\n    return refuse(",
        "        pass\n    return refuse(",
        f"{CONFORMANCE}/test_guard.py::test_after_a_cancel_the_expiry_is_written_down_as_the_cancel",
    ),
    Mutant(
        "a renewal adds to what is left",
        "core/rules/renew.py",
        "until_ms = max(lease.expires_ms, at.now_ms + ttl_ms)",
        "until_ms = lease.expires_ms + ttl_ms",
        f"{CORE}/test_renew.py::test_renewals_in_a_row_do_not_add_up",
    ),
    Mutant(
        "the engine's own statement for renewals adds to what is left",
        "store/sqlite/statements.sql",
        "    expires_ms = max(expires_ms, :now_ms + coalesce(:ttl_ms, ttl_ms)), beat_ms = :now_ms",
        "    expires_ms = expires_ms + coalesce(:ttl_ms, ttl_ms), beat_ms = :now_ms",
        f"{CONFORMANCE}/test_renew.py::test_renewing_often_adds_nothing_up",
    ),
    Mutant(
        "what a member of a shared commit raises does not undo what it wrote",
        "store/sqlite/group.py",
        'cursor.execute("ROLLBACK TO member; RELEASE member")',
        'cursor.execute("RELEASE member")',
        f"{GROUP}::test_a_member_that_raises_is_undone_alone",
    ),
    Mutant(
        "members of a commit that had no answer are done again",
        "store/sqlite/lane.py",
        "        fate = Fate.UNKNOWN\n",
        "",
        f"{GROUP}::test_a_commit_that_has_no_answer_is_an_unknown_outcome_for_all",
    ),
    Mutant(
        "the holder's deadline is measured from the answer",
        "client/blocking.py",
        "        sent_ms = self.clock.fast_ms()\n        return self.leases_of(self.backend.call(ask), sent_ms, ask)",
        "        grants = self.backend.call(ask)\n        return self.leases_of(grants, self.clock.fast_ms(), ask)",
        f"{CONFORMANCE}/test_contention.py::test_the_holders_own_deadline_counts_the_wait",
    ),
    Mutant(
        "an inner block ends the outer heartbeat",
        "client/keeper.py",
        "if left > 0 and belief.ended is None",
        "if left > 99 and belief.ended is None",
        "tests/client/test_left_and_nested.py::test_an_inner_block_leaves_the_outer_heartbeat",
    ),
    Mutant(
        "a store that is away is taken for a failure of the work",
        "client/blocking_lease.py",
        "isinstance(raised, Exception) and not is_store_away(raised)",
        "isinstance(raised, Exception)",
        "tests/client/test_left_and_nested.py::test_a_store_that_is_away_costs_no_attempt",
    ),
    Mutant(
        "an event that was added after its task was written is in no history",
        "store/sqlite/engine.py",
        "            if tx.loose:\n",
        "            if tx.loose and tx.refusals:\n",
        "tests/store/test_histories.py::test_an_operators_verbs_are_in_the_history_too",
    ),
    Mutant(
        "the task that a handle names is not compared",
        "store/sqlite/identity.py",
        ' + task_id.encode("utf-8", "surrogatepass")',
        "",
        f"{CONFORMANCE}/test_guard.py::test_a_handle_that_was_never_given_out_proves_nothing",
    ),
    Mutant(
        "a step whose result is kept is called again",
        "client/durable/steps.py",
        "            if kept is not None:\n",
        "            if kept is not None and not kept.slot:\n",
        f"{DURABLE}/test_steps.py::test_a_later_holder_gets_the_kept_result_and_calls_nothing_again",
    ),
    Mutant(
        "a parked run goes on",
        "client/durable/facts.py",
        "        if self.parked is not None:\n            raise self.parked\n",
        "",
        f"{DURABLE}/test_approvals.py::test_a_bare_except_swallows_it_and_every_further_call_raises_it_again",
    ),
    Mutant(
        "an effect is sent before it is on record",
        "client/durable/effects.py",
        "            start: Start = await self._hands.whole(",
        "            await self._hands.call(function, (decode(ask.payload), None), None)\n"
        "            start: Start = await self._hands.whole(",
        f"{DURABLE}/test_effects.py::test_an_effect_is_on_record_before_it_is_called_and_its_function_is_told_about_it",
    ),
    Mutant(
        "an unknown try is repeated whatever the contract",
        "core/rules/effect.py",
        "    match contract.kind:\n        case ContractKind.KEYED:\n",
        "    match contract.kind:\n        case ContractKind.OPAQUE:\n            return Verdict(Next.GO)\n"
        "        case ContractKind.KEYED:\n",
        f"{DURABLE}/test_effects.py::test_id_08_an_opaque_effect_of_a_holder_that_died_waits_for_a_person_and_then_goes_on",
    ),
    Mutant(
        "an exception of an effect is taken for a no",
        "client/durable/effects.py",
        "await self._tell(call, Outcome.UNKNOWN, error=",
        "await self._tell(call, Outcome.NOT_APPLIED, error=",
        f"{DURABLE}/test_effect_outcomes.py"
        "::test_id_10_an_opaque_effect_that_raised_or_whose_answer_is_unreadable_waits_for_a_person",
    ),
    Mutant(
        "a try that was not applied settles an unknown one before it",
        "core/rules/end_effect.py",
        "    elif ask.outcome is Outcome.NOT_APPLIED and effect.repeated:\n",
        "    elif ask.outcome is Outcome.NOT_APPLIED and effect.tries < 0:\n",
        f"{DURABLE}/test_effect_outcomes.py"
        "::test_a_repeated_try_that_did_not_apply_says_nothing_of_the_unknown_one_before_it",
    ),
    Mutant(
        "a decision counts for a question that has changed",
        "store/sqlite/work.sql",
        "AND w.n = :n AND w.digest = :digest",
        "AND w.n = :n AND :digest IS NOT NULL",
        f"{CORE}/test_waits.py::test_a_question_asked_anew_with_another_digest_does_not_take_the_old_decision",
    ),
    Mutant(
        "a decision is spent by the first holder that reads it",
        "store/sqlite/work.sql",
        "w.decision IS NOT NULL AND w.seq > :after",
        "w.decision IS NOT NULL AND w.seq > :after AND 1 >= (\n"
        "    SELECT count(*) FROM leases l WHERE l.task_seq = w.task_seq AND l.token > w.token)",
        f"{CORE}/test_waits.py::test_a_decision_is_readable_by_every_later_holder_and_never_changes",
    ),
    Mutant(
        "whoever decides second is told that it was heard",
        "core/rules/decide.py",
        "    if same and ask.digest in (None, last.digest):",
        "    if same or ask.digest in (None, last.digest):",
        f"{CORE}/test_decide.py::test_ap_09_everyone_after_the_first_is_told_what_was_decided_and_by_whom",
    ),
    Mutant(
        "a decision made on another question than the open one is taken",
        "core/rules/decide.py",
        "    if ask.digest is not None and ask.digest != wait.digest:",
        "    if ask.digest is not None and ask.digest == ask.name:",
        f"{CORE}/test_decide.py::test_a_decision_made_on_another_question_than_the_open_one_is_refused",
    ),
    Mutant(
        "an answer is taken at the very instant of the timeout",
        "core/rules/answer.py",
        "wait.due_wall_ms <= at.wall_ms",
        "wait.due_wall_ms < at.wall_ms",
        f"{CORE}/test_decide.py::test_an_answer_that_sees_the_end_of_the_time_writes_it_down_and_is_refused",
    ),
    Mutant(
        "a sweep ends a wait only after the instant of its timeout",
        "store/sqlite/work.sql",
        "t.due_wall_ms <= :wall_ms\n",
        "t.due_wall_ms < :wall_ms\n",
        f"{CORE}/test_waits.py::test_at_the_very_instant_the_time_is_over_whoever_sees_it",
    ),
    Mutant(
        "what a lost holder says of its try is taken as authority",
        "core/rules/end_effect.py",
        "            await testify(tx, effect, await _evidence(tx, ask, effect))"
        "  # or nobody's word, which is not kept\n        return held",
        "            effect.state, effect.receipt = EffectState.SUCCEEDED, maybe_text(ask.receipt)\n"
        "            await tx.update_effect(effect)\n"
        "        return held",
        f"{CORE}/test_reconcile.py::test_late_evidence_is_kept_moves_no_state_and_is_used_by_the_next_holder",
    ),
    Mutant(
        "a receipt that comes after a person said not applied is not believed",
        "core/rules/start_effect.py",
        "        elif effect.state is EffectState.FAILED and said.outcome is Outcome.APPLIED:",
        "        elif effect.state is EffectState.SUCCEEDED and said.outcome is Outcome.APPLIED:",
        f"{CORE}/test_reconcile.py"
        "::test_a_receipt_that_comes_after_somebody_said_not_applied_is_believed_rather_than_tried_again",
    ),
    Mutant(
        "a second call under the same lease is taken for the first",
        "core/rules/start_effect.py",
        "(effect.token, effect.call_id) == (held.lease.token, ask.call_id)",
        "effect.token == held.lease.token",
        f"{CORE}/test_effects.py"
        "::test_id_04_of_twenty_that_begin_the_same_effect_one_goes_and_the_others_are_told_that_it_is_under_way",
    ),
    Mutant(
        "a key is trusted at the very instant of its retention less the margin",
        "core/rules/effect.py",
        "age_ms + timeout_ms < _trusted_ms",
        "age_ms + timeout_ms <= _trusted_ms",
        f"{CORE}/test_effects.py::test_a_key_is_trusted_until_the_very_instant_of_its_retention_less_a_margin",
    ),
    Mutant(
        "not found counts while the last try may still arrive",
        "core/rules/end_effect.py",
        "ask.outcome is Outcome.NOT_APPLIED and wait_ms:",
        "ask.outcome is Outcome.NOT_APPLIED and wait_ms > 1:",
        f"{CORE}/test_reconcile.py"
        "::test_not_found_counts_from_the_very_instant_at_which_the_last_try_can_no_longer_arrive",
    ),
    Mutant(
        "an effect that another task takes up is counted by both",
        "core/rules/start_effect.py",
        "        before.unsettled -= 1\n",
        "",
        f"{CORE}/test_effects.py::test_who_must_ask_takes_it_up_too",
    ),
    Mutant(
        "a user's own transaction is judged at its start alone",
        "client/blocking_lease.py",
        "                if self.belief.ended is None:\n                    self._judge(own, ask)\n",
        "",
        f"{OWN}::test_a_lease_that_is_lost_meanwhile_undoes_it",
    ),
    Mutant(
        "a statement after a rollback commits by itself",
        "store/sqlite/own.py",
        "        self.connection.set_commit_hook(lambda: not self._ending)\n",
        "",
        f"{OWN}::test_a_statement_that_rolls_all_back_lets_nothing_after_it_commit_by_itself",
    ),
    Mutant(
        "the triggers that guard decisions may be dropped",
        "store/sqlite/own.py",
        "or (action in BESIDE_A_TABLE and two in RELETS)",
        "or (action in BESIDE_A_TABLE and second is None)",
        f"{OWN}::test_relets_tables_and_the_end_of_the_transaction_are_out_of_reach",
    ),
    Mutant(
        "a new holder does not raise the fence before it reads",
        "fences/sqlite.py",
        "        with self.write(resource, token):\n            pass",
        "        held(resource, token)",
        "tests/fences/test_sqlite.py::test_rows_of_any_shape_will_do",
    ),
)
