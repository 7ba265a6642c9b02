"""end_effect and reconcile: what became of a try, by whoever may say it, and what is kept of who may not."""

from types import SimpleNamespace

import msgspec
import pytest

from relet.core.errors import Conflict, LeaseLost, NotFound
from relet.core.model import Cause, State
from relet.core.rules.cancel import Cancel
from relet.core.rules.effect import Next, wait_name
from relet.core.rules.inspect_work import Effects
from relet.core.rules.requeue import Requeue
from relet.core.work import Contract, ContractKind, DecisionKind, EffectState, Outcome, WaitKind
from tests.core.durable import (
    CHECKED,
    NATURAL,
    claimed,
    counts_hold,
    decide,
    decisions,
    effect,
    effects,
    end,
    park,
    plain,
    reconcile,
    start,
    waits,
)
from tests.core.test_effects import OUTCOMES, lose, unknown

APPLIED, NOT_APPLIED = Outcome.APPLIED, Outcome.NOT_APPLIED


def started(scene, **more):
    """A try under way, and its holder."""
    grant = scene.held(max_losses=99, max_attempts=99)
    return grant, start(scene, grant, **more)


def asks_about(scene, grant):
    """Park until somebody has found out what became of the only effect."""
    return park(scene, grant, wait_name(effect(scene).id), WaitKind.RECONCILE)


# -- the holder ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", list(OUTCOMES))
def test_the_holder_says_what_became_of_its_try(scene, state):
    grant, said = started(scene)
    receipt = {"id": 7} if state is EffectState.SUCCEEDED else None
    told = end(scene, grant, said, OUTCOMES[state], receipt)
    assert (told.state, plain(told.receipt)) == (state, receipt)
    assert (effect(scene).state, effect(scene).receipt) == (state, receipt)
    event = scene.events()[-1]
    assert (event.kind, event.detail["outcome"], event.detail["attempt"]) == (Cause.EFFECT_ENDED, str(state), 1)
    assert counts_hold(scene) == {"t": int(state is EffectState.UNKNOWN)}


def test_an_unknown_end_without_words_says_that_nobody_answered(scene):
    grant, said = started(scene)
    end(scene, grant, said, Outcome.UNKNOWN)
    assert effect(scene).error == "no answer"


@pytest.mark.parametrize("again", [APPLIED, NOT_APPLIED, Outcome.UNKNOWN])
def test_id_06_receipts_only_move_forward(scene, again):
    grant, said = started(scene)
    end(scene, grant, said, receipt="ch_1")
    before, events = scene.state(), scene.events()
    told = end(scene, grant, said, again, "ch_2")
    assert (told.state, plain(told.receipt)) == (EffectState.SUCCEEDED, "ch_1")
    assert (scene.state(), scene.events()) == (before, events)
    assert plain(start(scene, grant).receipt) == "ch_1"


@pytest.mark.parametrize("outcome", [NOT_APPLIED, Outcome.UNKNOWN])
def test_a_holder_that_is_heard_after_its_own_doubt_leaves_evidence_for_the_next_start(scene, outcome):
    grant, said = started(scene)
    end(scene, grant, said, Outcome.UNKNOWN)
    assert end(scene, grant, said, outcome).state is EffectState.UNKNOWN
    assert [one.outcome for one in effect(scene).evidence] == [outcome]
    following = start(scene, grant).next
    assert following is (Next.GO if outcome is NOT_APPLIED else Next.ASK)


def test_a_cancelled_holder_may_still_say_what_became_of_its_try(scene):
    grant, said = started(scene)
    scene.ask(Cancel(task_id="t", reason="enough"))
    assert end(scene, grant, said, receipt=1).state is EffectState.SUCCEEDED
    assert counts_hold(scene) == {"t": 0}


def test_a_try_that_was_not_applied_says_nothing_of_an_unknown_one_before_it(scene):
    grant = unknown(scene, contract=NATURAL)
    again = start(scene, grant, contract=NATURAL)
    assert again.repeated
    told = end(scene, grant, again, NOT_APPLIED, error="409")
    assert told.state is EffectState.UNKNOWN
    assert "an earlier one may have been: 409" in effect(scene).error
    assert counts_hold(scene) == {"t": 1}
    end(scene, grant, start(scene, grant, contract=NATURAL), NOT_APPLIED)
    assert "no reason given" in effect(scene).error


def test_an_effect_that_nobody_knows_is_not_found(scene):
    grant, _ = started(scene)
    odd = SimpleNamespace(id="e-none", attempt=1)
    refused = end(scene, grant, odd)
    assert (type(refused), refused.detail["field"]) == (NotFound, "effect_id")
    scene.ask(Cancel(task_id="t", reason=""))
    lose(scene, grant)
    assert isinstance(end(scene, grant, odd), LeaseLost)


def test_a_stranger_may_not_say_anything(scene):
    grant, said = started(scene)
    before = scene.state()
    changed = msgspec.structs.replace(grant, handle=msgspec.structs.replace(grant.handle, secret="x"))
    assert isinstance(end(scene, changed, said), NotFound)
    assert scene.state() == before


# -- who was lost --------------------------------------------------------------------------------------------------


def test_late_evidence_is_kept_moves_no_state_and_is_used_by_the_next_holder(scene):
    grant, said = started(scene)
    lose(scene, grant)
    second = claimed(scene)
    before = scene.state()
    assert end(scene, grant, said, receipt="ch_1").reason == "superseded"
    after = scene.state()
    assert {table for table in after if after[table] != before[table]} == {"evidence"}
    (one,) = effect(scene).evidence
    assert (one.token, one.attempt, one.outcome, one.receipt) == (grant.handle.token, 1, APPLIED, "ch_1")
    assert effect(scene).state is EffectState.UNKNOWN
    told = start(scene, second)
    assert (told.next, plain(told.receipt)) == (Next.DONE, "ch_1")
    assert counts_hold(scene) == {"t": 0}


def test_the_same_evidence_said_twice_is_kept_once(scene):
    grant, said = started(scene)
    lose(scene, grant)
    for _ in range(3):
        end(scene, grant, said, receipt="ch_1")
    end(scene, grant, said, Outcome.UNKNOWN, error="then again, who knows")
    assert [one.outcome for one in effect(scene).evidence] == [APPLIED, Outcome.UNKNOWN]


def test_late_evidence_that_the_only_try_was_not_applied_lets_it_be_tried(scene):
    grant, said = started(scene)
    lose(scene, grant)
    end(scene, grant, said, NOT_APPLIED)
    told = start(scene, claimed(scene))
    assert (told.next, told.attempt, told.repeated) == (Next.GO, 2, False)
    assert counts_hold(scene) == {"t": 1}


def test_late_evidence_that_one_of_several_was_not_applied_settles_nothing(scene):
    second = unknown(scene, contract=NATURAL)
    again = start(scene, second, contract=NATURAL)
    lose(scene, second)
    end(scene, second, again, NOT_APPLIED)
    assert start(scene, claimed(scene)).next is Next.ASK


def test_late_evidence_that_an_earlier_try_was_applied_settles_it(scene):
    first, said = started(scene, contract=NATURAL)
    lose(scene, first)
    second = claimed(scene)
    start(scene, second, contract=NATURAL)
    end(scene, first, said, receipt="ch_1")
    assert effect(scene).state is EffectState.STARTED, "evidence is no authority over a try under way"
    lose(scene, second)
    told = start(scene, claimed(scene), contract=NATURAL)
    assert (told.next, plain(told.receipt)) == (Next.DONE, "ch_1")


def test_late_evidence_after_the_end_changes_nothing(scene):
    first, said = started(scene, contract=NATURAL)
    lose(scene, first)
    second = claimed(scene)
    end(scene, second, start(scene, second, contract=NATURAL), receipt="ch_2")
    end(scene, first, said, NOT_APPLIED)
    end(scene, first, said, receipt="ch_1")
    assert plain(start(scene, second, contract=NATURAL).receipt) == "ch_2"


def test_a_receipt_that_comes_after_somebody_said_not_applied_is_believed_rather_than_tried_again(scene):
    first, said = started(scene)
    lose(scene, first)
    reconcile(scene, said.id, NOT_APPLIED)
    end(scene, first, said, receipt="ch_1")
    assert effect(scene).state is EffectState.FAILED, "and yet it moves nothing by itself"
    told = start(scene, claimed(scene))
    assert (told.next, plain(told.receipt), told.attempt) == (Next.DONE, "ch_1", 1)
    assert (effect(scene).state, effect(scene).reconciled_by) == (EffectState.SUCCEEDED, None)
    assert counts_hold(scene) == {"t": 0}


# -- a look --------------------------------------------------------------------------------------------------------


def looked(scene, grant, outcome, receipt=None):
    return end(scene, grant, start(scene, grant, contract=SLOW), outcome, receipt, looked=True)


SLOW = Contract(kind=ContractKind.QUERYABLE, checked=True, settles_ms=3_000)


def doubtful(scene):
    grant = scene.held()
    end(scene, grant, start(scene, grant, contract=SLOW, timeout_ms=2_000), Outcome.UNKNOWN)
    return grant


def test_found_is_final_at_once(scene):
    grant = doubtful(scene)
    assert plain(looked(scene, grant, APPLIED, "ch_1").receipt) == "ch_1"
    assert counts_hold(scene) == {"t": 0}
    assert start(scene, grant, contract=SLOW).next is Next.DONE


def test_not_found_counts_from_the_very_instant_at_which_the_last_try_can_no_longer_arrive(scene):
    grant = doubtful(scene)
    scene.pass_ms(4_999)
    before = scene.state()
    refused = looked(scene, grant, NOT_APPLIED)
    assert (type(refused), refused.code) == (Conflict, "RELET-EFFECT-EARLY")
    assert refused.detail["settles_in_ms"] == 1
    assert scene.state() == before
    scene.pass_ms(1)
    assert looked(scene, grant, NOT_APPLIED).state is EffectState.FAILED
    assert start(scene, grant, contract=SLOW).next is Next.GO


def test_a_look_that_tells_nothing_settles_nothing(scene):
    grant = doubtful(scene)
    before = scene.state()
    assert looked(scene, grant, Outcome.UNKNOWN).state is EffectState.UNKNOWN
    assert scene.state() == before


def test_a_look_at_what_is_known_or_is_another_tasks_by_now_changes_nothing(scene):
    grant, said = started(scene, key="order-7", contract=CHECKED)
    before = scene.state()
    assert end(scene, grant, said, NOT_APPLIED, looked=True).state is EffectState.STARTED
    assert scene.state() == before
    end(scene, grant, said, Outcome.UNKNOWN)
    other = scene.held("other")
    assert start(scene, other, key="order-7", contract=CHECKED).next is Next.LOOK
    before = scene.state()
    assert end(scene, grant, said, APPLIED, looked=True).state is EffectState.UNKNOWN
    assert scene.state() == before


# -- a person ------------------------------------------------------------------------------------------------------


def test_id_08_applied_lets_the_task_go_on_past_it_with_the_receipt(scene):
    grant = unknown(scene)
    assert start(scene, grant).next is Next.ASK
    assert asks_about(scene, grant).state is State.WAITING
    found = reconcile(scene, effect(scene).id, APPLIED, {"ref": "ch_1"})
    assert (found.state, found.receipt, found.reconciled_by) == (EffectState.SUCCEEDED, {"ref": "ch_1"}, "ann")
    assert scene.task().state is State.READY
    second = claimed(scene)
    assert decisions(scene, second)[0][2:] == ("accept", {"ref": "ch_1"}, "ann")
    assert plain(start(scene, second).receipt) == {"ref": "ch_1"}
    assert scene.complete(second).outcomes[0].state == "done"


def test_id_08_not_applied_lets_it_run_once(scene):
    grant = unknown(scene)
    asks_about(scene, grant)
    found = reconcile(scene, effect(scene).id, NOT_APPLIED)
    assert (found.state, found.error) == (EffectState.FAILED, "it was not applied")
    second = claimed(scene)
    assert decisions(scene, second)[0][2] == "deny"
    again = start(scene, second)
    assert (again.next, again.attempt, again.repeated) == (Next.GO, 2, False)
    assert effect(scene).reconciled_by is None, "of this try nobody has said anything"
    lose(scene, second)
    assert start(scene, claimed(scene)).next is Next.ASK, "and no third time"


def test_the_same_finding_said_twice_is_said_once_and_another_is_refused(scene):
    unknown(scene)
    identity = effect(scene).id
    told = reconcile(scene, identity, APPLIED, "ch_1")
    before, events = scene.state(), scene.events()
    assert reconcile(scene, identity, APPLIED, "ch_1") == told
    for other in ((APPLIED, "ch_2"), (APPLIED, None), (NOT_APPLIED, None)):
        refused = reconcile(scene, identity, *other)
        assert (type(refused), refused.code) == (Conflict, "RELET-EFFECT-SETTLED")
        assert "by ann" in str(refused)
    assert (scene.state(), scene.events()) == (before, events)


def test_what_its_holder_has_settled_is_not_settled_again(scene):
    grant, said = started(scene)
    end(scene, grant, said, receipt=1)
    refused = reconcile(scene, said.id, NOT_APPLIED)
    assert (refused.code, " by " in str(refused).partition(";")[0]) == ("RELET-EFFECT-SETTLED", False)


def test_a_try_under_way_under_a_live_lease_is_not_settled_by_others(scene):
    grant, said = started(scene)
    before = scene.state()
    refused = reconcile(scene, said.id)
    assert (type(refused), refused.code) == (Conflict, "RELET-EFFECT-BUSY")
    assert refused.detail["task_id"] == "t"
    assert scene.state() == before
    scene.pass_ms(grant.ttl_ms)
    assert reconcile(scene, said.id).state is EffectState.SUCCEEDED, "expired, though nobody has swept"
    assert counts_hold(scene) == {"t": 0}


def test_an_effect_that_nobody_started_cannot_be_reconciled(scene):
    refused = reconcile(scene, "e-none")
    assert (type(refused), refused.detail["field"]) == (NotFound, "effect_id")


def test_who_parks_for_what_was_settled_meanwhile_goes_on_at_once(scene):
    grant = unknown(scene)
    assert start(scene, grant).next is Next.ASK
    reconcile(scene, effect(scene).id, APPLIED, "ch_1")
    assert asks_about(scene, grant).state is State.READY
    assert decisions(scene, claimed(scene))[0][2:] == ("accept", "ch_1", "ann")


def test_who_parks_for_an_effect_that_does_not_exist_waits(scene):
    grant = scene.held()
    assert park(scene, grant, "effect:e-none", WaitKind.RECONCILE).state is State.WAITING


def test_a_reconciliation_is_no_question_for_decide(scene):
    asks_about(scene, unknown(scene))
    before = scene.state()
    refused = decide(scene, name=wait_name(effect(scene).id))
    assert (refused.code, refused.detail["wait"]) == ("RELET-NOT-ASKED", "reconcile")
    assert "relet effects" in str(refused)
    assert scene.state() == before


def test_a_parked_task_goes_on_when_its_effect_is_settled_by_another_task(scene):
    one, two = scene.held("one"), scene.held("two")
    end(scene, one, start(scene, one, key="order-7", contract=CHECKED), Outcome.UNKNOWN)
    asks_about(scene, one)
    said = start(scene, two, key="order-7", contract=CHECKED)
    assert said.next is Next.LOOK
    end(scene, two, said, receipt="ch_1", looked=True)
    assert scene.task("one").state is State.READY
    again = claimed(scene, task_id="one")
    assert decisions(scene, again)[0][2:] == ("accept", "ch_1", "holder")
    assert plain(start(scene, again, key="order-7", contract=CHECKED).receipt) == "ch_1"
    assert counts_hold(scene) == {"one": 0, "two": 0}


def test_a_task_that_went_elsewhere_meanwhile_keeps_the_answer_and_is_not_disturbed(scene):
    asks_about(scene, unknown(scene))
    scene.ask(Cancel(task_id="t", reason="enough"))
    reconcile(scene, effect(scene).id, NOT_APPLIED)
    assert scene.task().state is State.CANCELLED
    assert waits(scene)[0].decision.kind is DecisionKind.DENY
    scene.ask(Requeue(task_id="t"))
    assert start(scene, claimed(scene)).next is Next.GO


def test_effects_are_listed_by_state_and_task_in_pages(scene):
    one, two = scene.held("one"), scene.held("two")
    for n in range(3):
        end(scene, one, start(scene, one, f"e{n}"), Outcome.UNKNOWN if n else APPLIED)
    start(scene, two, "e3")
    assert [item.name for item in effects(scene)] == ["e0", "e1", "e2", "e3"]
    assert [item.name for item in effects(scene, state=EffectState.UNKNOWN)] == ["e1", "e2"]
    assert [item.name for item in effects(scene, task_id="two")] == ["e3"]
    assert effects(scene, task_id="two", state=EffectState.UNKNOWN) == []
    first = effects(scene, limit=3)
    assert [item.name for item in effects(scene, after=first[-1].id)] == ["e3"]
    (second,) = effects(scene, state=EffectState.UNKNOWN, limit=1)
    assert [item.name for item in effects(scene, state=EffectState.UNKNOWN, after=second.id)] == ["e2"]
    assert isinstance(scene.ask(Effects(after="e-none")), NotFound)
