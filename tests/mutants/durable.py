"""Mutants of durable work: steps, waits and effects."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import CORE, DURABLE, Mutant

WORK: Final = (
    Mutant(
        "a step whose result is kept is called again",
        ("steps",),
        "client/durable/steps.py",
        "            if kept is not None:\n",
        "            if kept is not None and not kept.slot:\n",
        f"{DURABLE}/test_steps.py::test_a_later_holder_gets_the_kept_result_and_calls_nothing_again",
    ),
    Mutant(
        "a parked run goes on",
        ("waits",),
        "client/durable/facts.py",
        "        if self.parked is not None:\n            raise self.parked\n",
        "",
        f"{DURABLE}/test_approvals.py::test_a_bare_except_swallows_it_and_every_further_call_raises_it_again",
    ),
    Mutant(
        "an effect is sent before it is on record",
        ("P10",),
        "client/durable/effects.py",
        "            start: Start = await self._hands.whole(",
        "            await self._hands.call(function, (decode(ask.payload), None), None)\n"
        "            start: Start = await self._hands.whole(",
        f"{DURABLE}/test_effects.py::test_an_effect_is_on_record_before_it_is_called_and_its_function_is_told_about_it",
    ),
    Mutant(
        "an unknown try is repeated whatever the contract",
        ("P10",),
        "core/rules/effect.py",
        "    match contract.kind:\n        case ContractKind.KEYED:\n",
        "    match contract.kind:\n        case ContractKind.OPAQUE:\n            return Verdict(Next.GO)\n"
        "        case ContractKind.KEYED:\n",
        f"{DURABLE}/test_effects.py::test_id_08_an_opaque_effect_of_a_holder_that_died_waits_for_a_person_and_then_goes_on",
    ),
    Mutant(
        "an exception of an effect is taken for a no",
        ("P10",),
        "client/durable/effects.py",
        "await self._tell(call, Outcome.UNKNOWN, error=",
        "await self._tell(call, Outcome.NOT_APPLIED, error=",
        f"{DURABLE}/test_effect_outcomes.py"
        "::test_id_10_an_opaque_effect_that_raised_or_whose_answer_is_unreadable_waits_for_a_person",
    ),
    Mutant(
        "a try that was not applied settles an unknown one before it",
        ("P10",),
        "core/rules/end_effect.py",
        "    elif ask.outcome is Outcome.NOT_APPLIED and effect.repeated:\n",
        "    elif ask.outcome is Outcome.NOT_APPLIED and effect.tries < 0:\n",
        f"{DURABLE}/test_effect_outcomes.py"
        "::test_a_repeated_try_that_did_not_apply_says_nothing_of_the_unknown_one_before_it",
    ),
    Mutant(
        "a decision counts for a question that has changed",
        ("waits",),
        "store/sqlite/work.sql",
        "AND w.n = :n AND w.digest = :digest",
        "AND w.n = :n AND :digest IS NOT NULL",
        f"{CORE}/test_waits.py::test_a_question_asked_anew_with_another_digest_does_not_take_the_old_decision",
    ),
    Mutant(
        "a decision is spent by the first holder that reads it",
        ("waits",),
        "store/sqlite/work.sql",
        "w.decision IS NOT NULL AND w.seq > :after",
        "w.decision IS NOT NULL AND w.seq > :after AND 1 >= (\n"
        "    SELECT count(*) FROM leases l WHERE l.task_seq = w.task_seq AND l.token > w.token)",
        f"{CORE}/test_waits.py::test_a_decision_is_readable_by_every_later_holder_and_never_changes",
    ),
    Mutant(
        "whoever decides second is told that it was heard",
        ("waits",),
        "core/rules/decide.py",
        "    if same and ask.digest in (None, last.digest):",
        "    if same or ask.digest in (None, last.digest):",
        f"{CORE}/test_decide.py::test_ap_09_everyone_after_the_first_is_told_what_was_decided_and_by_whom",
    ),
    Mutant(
        "a decision made on another question than the open one is taken",
        ("waits",),
        "core/rules/decide.py",
        "    if ask.digest is not None and ask.digest != wait.digest:",
        "    if ask.digest is not None and ask.digest == ask.name:",
        f"{CORE}/test_decide.py::test_a_decision_made_on_another_question_than_the_open_one_is_refused",
    ),
    Mutant(
        "an answer is taken at the very instant of the timeout",
        ("waits",),
        "core/rules/answer.py",
        "wait.due_wall_ms <= at.wall_ms",
        "wait.due_wall_ms < at.wall_ms",
        f"{CORE}/test_decide.py::test_an_answer_that_sees_the_end_of_the_time_writes_it_down_and_is_refused",
    ),
    Mutant(
        "a sweep ends a wait only after the instant of its timeout",
        ("waits",),
        "store/sqlite/work.sql",
        "t.due_wall_ms <= :wall_ms\n",
        "t.due_wall_ms < :wall_ms\n",
        f"{CORE}/test_waits.py::test_at_the_very_instant_the_time_is_over_whoever_sees_it",
    ),
    Mutant(
        "what a lost holder says of its try is taken as authority",
        ("P10",),
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
        ("P10",),
        "core/rules/start_effect.py",
        "        elif effect.state is EffectState.FAILED and said.outcome is Outcome.APPLIED:",
        "        elif effect.state is EffectState.SUCCEEDED and said.outcome is Outcome.APPLIED:",
        f"{CORE}/test_reconcile.py"
        "::test_a_receipt_that_comes_after_somebody_said_not_applied_is_believed_rather_than_tried_again",
    ),
    Mutant(
        "the payload of a known effect is not compared",
        ("P11",),
        "core/rules/start_effect.py",
        "    if effect.fingerprint != fingerprint:",
        "    if not effect.fingerprint:",
        f"{CORE}/test_effects.py::test_the_same_key_with_another_payload_is_refused_and_nothing_changed",
    ),
    Mutant(
        "a second call under the same lease is taken for the first",
        ("P10",),
        "core/rules/start_effect.py",
        "(effect.token, effect.call_id) == (held.lease.token, ask.call_id)",
        "effect.token == held.lease.token",
        f"{CORE}/test_effects.py"
        "::test_id_04_of_twenty_that_begin_the_same_effect_one_goes_and_the_others_are_told_that_it_is_under_way",
    ),
    Mutant(
        "a key is trusted at the very instant of its retention less the margin",
        ("P10",),
        "core/rules/effect.py",
        "age_ms + timeout_ms < _trusted_ms",
        "age_ms + timeout_ms <= _trusted_ms",
        f"{CORE}/test_effects.py::test_a_key_is_trusted_until_the_very_instant_of_its_retention_less_a_margin",
    ),
    Mutant(
        "not found counts while the last try may still arrive",
        ("P10",),
        "core/rules/end_effect.py",
        "ask.outcome is Outcome.NOT_APPLIED and wait_ms:",
        "ask.outcome is Outcome.NOT_APPLIED and wait_ms > 1:",
        f"{CORE}/test_reconcile.py"
        "::test_not_found_counts_from_the_very_instant_at_which_the_last_try_can_no_longer_arrive",
    ),
    Mutant(
        "an effect that another task takes up is counted by both",
        ("P10",),
        "core/rules/start_effect.py",
        "        before.unsettled -= 1\n",
        "",
        f"{CORE}/test_effects.py::test_who_must_ask_takes_it_up_too",
    ),
)
