"""start_effect: recorded before it is tried; tried again only where the contract allows it."""

import hashlib
from types import SimpleNamespace

import pytest

from relet.core import limits
from relet.core.errors import Conflict, LeaseLost
from relet.core.model import Cause
from relet.core.rules.cancel import Cancel
from relet.core.rules.effect import Next
from relet.core.rules.fail import Fail
from relet.core.rules.release import Release
from relet.core.rules.sweep import Sweep
from relet.core.work import Contract, ContractKind, EffectState, Outcome
from tests.core.durable import (
    CHECKED,
    NATURAL,
    OPAQUE,
    claimed,
    counts_hold,
    effect,
    effects,
    end,
    keyed,
    park,
    plain,
    reconcile,
    start,
)
from tests.core.scene import TTL_MS

DAY_MS = limits.DAY_MS
CONDITIONAL = Contract(kind=ContractKind.CONDITIONAL)
QUERYABLE = Contract(kind=ContractKind.QUERYABLE, checked=True)
# What a holder does with an effect whose outcome is not known, by the contract that it declares.
OF_UNKNOWN = {
    "natural": (NATURAL, Next.GO),
    "conditional": (CONDITIONAL, Next.GO),
    "keyed": (keyed(10 * DAY_MS), Next.GO),
    "keyed, forgotten": (keyed(0), Next.ASK),
    "keyed, forgotten, with a look": (keyed(0, checked=True), Next.LOOK),
    "queryable": (QUERYABLE, Next.LOOK),
    "opaque": (OPAQUE, Next.ASK),
    "opaque with a look": (CHECKED, Next.LOOK),
}


def lose(scene, grant):
    """The lease ends by silence, and the task can be claimed at once."""
    scene.pass_ms(grant.ttl_ms)
    scene.ask(Sweep())
    scene.pass_ms(10_000)


def unknown(scene, name="pay", **more):
    """An effect whose starter died, and the next holder of its task."""
    grant = scene.held(max_losses=99, max_attempts=99)
    start(scene, grant, name, **more)
    lose(scene, grant)
    return claimed(scene)


def test_the_first_start_is_recorded_under_the_lease_and_goes(scene):
    grant = scene.held()
    said = start(scene, grant, timeout_ms=7_000)
    assert (said.next, said.attempt, said.repeated, bool(said.receipt)) == (Next.GO, 1, False, False)
    found = effect(scene)
    assert (found.id, found.task_id, found.queue, found.name, found.key) == (said.id, "t", "q", "pay", None)
    assert (found.state, found.tries, found.token) == (EffectState.STARTED, 1, grant.handle.token)
    assert (found.receipt, found.error, found.evidence) == (None, None, [])
    event = scene.events()[-1]
    assert (event.kind, event.token, event.detail) == (
        Cause.EFFECT_STARTED, grant.handle.token, {"effect": said.id, "name": "pay", "attempt": 1},
    )  # fmt: skip
    assert counts_hold(scene) == {"t": 1}


def test_the_key_for_the_other_side_is_the_same_for_each_try_and_tells_effects_apart(scene):
    grant = unknown(scene, contract=NATURAL)
    first = effect(scene)
    again = start(scene, grant, contract=NATURAL)
    other = start(scene, grant, "mail")
    assert (again.id, again.attempt, again.repeated) == (first.id, 2, True)
    lose(scene, grant)
    assert start(scene, claimed(scene), contract=NATURAL).key == again.key != other.key
    assert again.key not in {again.id, "pay"}


@pytest.mark.parametrize("contract", [contract for contract, _ in OF_UNKNOWN.values()], ids=OF_UNKNOWN)
def test_what_has_succeeded_is_answered_by_its_receipt_whatever_the_contract(scene, contract):
    grant = scene.held()
    end(scene, grant, start(scene, grant, contract=contract), receipt={"id": 7})
    before, events = scene.state(), scene.events()
    said = start(scene, grant, contract=contract)
    assert (said.next, plain(said.receipt), said.attempt) == (Next.DONE, {"id": 7}, 1)
    lose(scene, grant)
    assert plain(start(scene, claimed(scene), contract=contract).receipt) == {"id": 7}
    assert scene.state()["effects"] == before["effects"]
    assert scene.causes().count(Cause.EFFECT_STARTED) == [event.kind for event in events].count(Cause.EFFECT_STARTED)


@pytest.mark.parametrize("contract", [contract for contract, _ in OF_UNKNOWN.values()], ids=OF_UNKNOWN)
def test_what_was_not_applied_may_be_tried_again_whatever_the_contract(scene, contract):
    grant = scene.held()
    end(scene, grant, start(scene, grant, contract=contract), Outcome.NOT_APPLIED, error="refused")
    assert (effect(scene).state, effect(scene).error) == (EffectState.FAILED, "refused")
    assert counts_hold(scene) == {"t": 0}
    said = start(scene, grant, contract=contract)
    assert (said.next, said.attempt, said.repeated) == (Next.GO, 2, False)
    assert (effect(scene).state, effect(scene).error) == (EffectState.STARTED, None)
    assert counts_hold(scene) == {"t": 1}


@pytest.mark.parametrize(("contract", "following"), OF_UNKNOWN.values(), ids=OF_UNKNOWN)
@pytest.mark.parametrize("how", ["its lease lapsed", "its holder said so"])
def test_what_nobody_knows_is_repeated_looked_up_or_asked_about_by_the_contract(scene, contract, following, how):
    if how == "its lease lapsed":
        grant = unknown(scene, contract=contract)
    else:
        grant = scene.held()
        end(scene, grant, start(scene, grant, contract=contract), Outcome.UNKNOWN, error="timeout")
    found = effect(scene)
    assert found.state is EffectState.UNKNOWN
    assert found.error == {"its lease lapsed": "the lease that started it has ended"}.get(how, "timeout")
    said = start(scene, grant, contract=contract)
    assert said.next is following
    if following is Next.GO:
        assert (said.attempt, said.repeated) == (2, True)
        assert effect(scene).state is EffectState.STARTED
    else:
        assert (said.attempt, said.repeated) == (1, False)
        assert (effect(scene).state, effect(scene).tries) == (EffectState.UNKNOWN, 1)
    assert counts_hold(scene) == {"t": 1}


def test_the_contract_that_the_program_declares_now_decides(scene):
    grant = unknown(scene, contract=OPAQUE)
    assert start(scene, grant, contract=OPAQUE).next is Next.ASK
    assert start(scene, grant, contract=QUERYABLE).next is Next.LOOK
    assert effect(scene).contract == QUERYABLE
    assert start(scene, grant, contract=NATURAL).next is Next.GO


@pytest.mark.parametrize(
    ("retention_ms", "margin_ms"), [(100 * DAY_MS, DAY_MS), (DAY_MS, DAY_MS // 10)], ids=["a day", "a tenth"]
)
def test_a_key_is_trusted_until_the_very_instant_of_its_retention_less_a_margin(scene, retention_ms, margin_ms):
    contract = keyed(retention_ms)
    scene.submit("t", max_attempts=99, max_losses=99)
    first = claimed(scene)
    began_ms = scene.clock.wall_ms()
    start(scene, first, contract=contract)
    until_ms = retention_ms - margin_ms - 1_000  # the repeated call may arrive as late as its timeout allows
    scene.clock.step((began_ms + until_ms - 1 - scene.clock.wall_ms()) / 1_000)
    end(scene, first, the_try(effect(scene)), Outcome.UNKNOWN)
    assert start(scene, first, contract=contract).next is Next.GO
    end(scene, first, the_try(effect(scene)), Outcome.UNKNOWN)
    scene.clock.step(0.001)
    assert start(scene, first, contract=contract).next is Next.ASK


def the_try(found):
    """The newest try of an effect, as its starter knows it."""
    return SimpleNamespace(id=found.id, attempt=found.tries)


def test_a_second_try_does_not_make_the_other_side_remember_for_longer(scene):
    contract = keyed(DAY_MS)
    grant = scene.held()
    start(scene, grant, contract=contract)
    end(scene, grant, the_try(effect(scene)), Outcome.UNKNOWN)
    scene.clock.step(80_000)
    assert start(scene, grant, contract=contract).next is Next.ASK, "a day less a tenth has passed"


def test_the_time_counts_anew_from_the_first_try_after_one_that_was_not_applied(scene):
    contract = keyed(DAY_MS)
    grant = scene.held()
    end(scene, grant, start(scene, grant, contract=contract), Outcome.NOT_APPLIED)
    scene.clock.step(80_000)
    end(scene, grant, start(scene, grant, contract=contract), Outcome.UNKNOWN)
    assert start(scene, grant, contract=contract).next is Next.GO


def test_a_look_counts_once_the_last_try_can_no_longer_arrive(scene):
    contract = Contract(kind=ContractKind.QUERYABLE, checked=True, settles_ms=3_000)
    grant = scene.held()
    end(scene, grant, start(scene, grant, contract=contract, timeout_ms=2_000), Outcome.UNKNOWN)
    scene.pass_ms(1_000)
    assert start(scene, grant, contract=contract).settles_in_ms == 4_000
    scene.pass_ms(3_999)
    assert start(scene, grant, contract=contract).settles_in_ms == 1
    scene.pass_ms(1)
    assert start(scene, grant, contract=contract).settles_in_ms == 0
    scene.pass_ms(1)
    assert start(scene, grant, contract=contract).settles_in_ms == 0


# -- one key, one payload, one try at a time -----------------------------------------------------------------------


@pytest.mark.parametrize("state", list(EffectState))
def test_the_same_key_with_another_payload_is_refused_and_nothing_changed(scene, state):
    grant = scene.held()
    said = start(scene, grant, payload={"amount": 5}, contract=NATURAL)
    if state is not EffectState.STARTED:
        end(scene, grant, said, OUTCOMES[state])
    assert effect(scene).state is state
    before, events = scene.state(), scene.events()
    refused = start(scene, grant, payload={"amount": 6}, contract=NATURAL)
    assert (type(refused), refused.code, refused.detail["field"]) == (Conflict, "RELET-EFFECT-CONFLICT", "payload")
    assert refused.detail["state"] == state
    assert (scene.state(), scene.events()) == (before, events)
    assert start(scene, grant, payload={"amount": 6}, contract=NATURAL, name="other").next is Next.GO


OUTCOMES = {
    EffectState.SUCCEEDED: Outcome.APPLIED,
    EffectState.FAILED: Outcome.NOT_APPLIED,
    EffectState.UNKNOWN: Outcome.UNKNOWN,
}


def test_the_fingerprint_of_a_payload_is_keyed_so_that_a_short_one_cannot_be_guessed(scene):
    start(scene, scene.held(), payload=1234)
    ((stored,),) = scene.rows("SELECT fingerprint FROM effects")
    assert not hashlib.sha256(b"1234").hexdigest().startswith(stored[:16])


def test_the_same_call_said_twice_after_a_lost_reply_starts_no_second_try(scene):
    grant = scene.held()
    first = start(scene, grant, call_id="c")
    before, events = scene.state(), scene.events()
    assert start(scene, grant, call_id="c") == first
    assert (scene.state(), scene.events()) == (before, events)


def test_id_04_of_twenty_that_begin_the_same_effect_one_goes_and_the_others_are_told_that_it_is_under_way(scene):
    grant = scene.held()
    first = start(scene, grant, contract=NATURAL)
    before = scene.state()
    for _ in range(19):
        refused = start(scene, grant, contract=NATURAL)
        assert (type(refused), refused.code, refused.detail["effect"]) == (Conflict, "RELET-EFFECT-BUSY", first.id)
    assert scene.state() == before
    end(scene, grant, first, receipt=7)
    assert [plain(start(scene, grant, contract=NATURAL).receipt) for _ in range(19)] == [7] * 19


def test_a_start_under_a_lost_or_cancelled_lease_is_refused_and_not_recorded(scene):
    grant = scene.held()
    scene.ask(Cancel(task_id="t", reason="enough"))
    assert start(scene, grant).reason == "cancelled"
    scene.pass_ms(TTL_MS)
    assert isinstance(start(scene, grant), LeaseLost)
    assert effects(scene) == []


# -- the end of the lease that started it --------------------------------------------------------------------------

ENDS = {
    "lapse": lose,
    "release": lambda scene, grant: scene.ask(Release(handle=grant.handle)),
    "failure": lambda scene, grant: scene.ask(Fail(handle=grant.handle, error="no", delay_ms=0)),
    "dead letter": lambda scene, grant: scene.ask(Fail(handle=grant.handle, error="no", retry=False)),
    "park": park,
}


@pytest.mark.parametrize("how", ENDS)
def test_id_01_as_soon_as_its_lease_has_ended_an_open_try_is_listed_as_unknown(scene, how):
    grant = scene.held()
    said = start(scene, grant)
    assert effects(scene, state=EffectState.UNKNOWN) == []
    ENDS[how](scene, grant)
    assert [one.id for one in effects(scene, state=EffectState.UNKNOWN)] == [said.id]
    assert effects(scene, state=EffectState.STARTED) == []
    assert counts_hold(scene) == {"t": 1}
    told = [event for event in scene.events() if event.kind is Cause.EFFECT_ENDED]
    assert [event.detail["outcome"] for event in told] == ["unknown"]


def test_an_open_try_of_a_cancelled_task_is_unknown_once_its_holder_gave_way(scene):
    grant = scene.held()
    start(scene, grant)
    scene.ask(Cancel(task_id="t", reason="enough"))
    assert effect(scene).state is EffectState.STARTED
    scene.ask(Release(handle=grant.handle))
    assert effect(scene).state is EffectState.UNKNOWN
    assert counts_hold(scene) == {"t": 1}


def test_a_try_of_a_lease_that_expired_unseen_is_unknown_to_the_next_holder(scene):
    """By business key: another task meets it before anybody has swept."""
    one, two = scene.held("one", ttl_ms=1_000), scene.held("two")
    start(scene, one, key="order-7", contract=NATURAL)
    scene.pass_ms(999)
    assert start(scene, two, key="order-7", contract=NATURAL).code == "RELET-EFFECT-BUSY"
    scene.pass_ms(1)
    said = start(scene, two, key="order-7", contract=NATURAL)
    assert (said.next, said.repeated, effect(scene).token) == (Next.GO, True, two.handle.token)
    assert counts_hold(scene) == {"one": 0, "two": 1}
    assert scene.task("one").losses == 1  # written down before anybody acts on it
    assert scene.ask(Sweep()).lapsed == 0
    assert (effect(scene).state, counts_hold(scene)) == (EffectState.STARTED, {"one": 0, "two": 1})


def test_a_task_is_not_completed_while_nobody_knows_what_became_of_its_effects(scene):
    grant = unknown(scene)
    start(scene, grant, "mail")
    before, events = scene.state(), scene.events()
    refused = scene.complete(grant).outcomes[0]
    assert (type(refused), refused.code) == (Conflict, "RELET-EFFECT-OPEN")
    assert refused.detail["effects"] == [one.id for one in effects(scene)]
    assert (scene.state(), scene.events()) == (before, events)
    for one in effects(scene):
        if one.state is EffectState.UNKNOWN:
            reconcile(scene, one.id)
    assert scene.complete(grant).outcomes[0].detail["effects"] == [effects(scene)[1].id]
    end(scene, grant, the_try(effects(scene)[1]))
    assert scene.complete(grant).outcomes[0].state == "done"


# -- business keys -------------------------------------------------------------------------------------------------


def test_an_effect_by_business_key_is_one_for_all_tasks_of_the_tenant(scene):
    one, two = scene.held("one"), scene.held("two")
    first = start(scene, one, "pay", key="order-7")
    assert start(scene, two, "pay").id != first.id, "by name it is one of each task"
    assert start(scene, two, "charge", key="order-7").code == "RELET-EFFECT-BUSY"
    end(scene, one, first, receipt="ch_1")
    assert plain(start(scene, two, "charge", key="order-7").receipt) == "ch_1"
    assert [item.task_id for item in effects(scene)] == ["one", "two"]


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.NOT_APPLIED])
def test_an_effect_passes_to_the_task_that_takes_it_up(scene, outcome):
    one, two = scene.held("one"), scene.held("two")
    end(scene, one, start(scene, one, key="order-7", contract=NATURAL), outcome)
    said = start(scene, two, key="order-7", contract=NATURAL)
    assert (said.next, said.repeated) == (Next.GO, outcome is Outcome.UNKNOWN)
    assert effect(scene).task_id == "two"
    assert counts_hold(scene) == {"one": 0, "two": 1}
    assert scene.complete(one).outcomes[0].state == "done", "it is the other's now"
    assert scene.complete(two).outcomes[0].code == "RELET-EFFECT-OPEN"


def test_who_must_ask_takes_it_up_too(scene):
    one, two = scene.held("one"), scene.held("two")
    end(scene, one, start(scene, one, key="order-7"), Outcome.UNKNOWN)
    assert start(scene, two, key="order-7").next is Next.ASK
    assert counts_hold(scene) == {"one": 0, "two": 1}


def test_id_07_a_key_of_an_effect_holds_over_attempts_and_is_another_thing_than_the_id_of_the_task(scene):
    grant = scene.held("order-7")
    end(scene, grant, start(scene, grant, "charge", key="charge:order-7"), receipt="ch_1")
    scene.ask(Fail(handle=grant.handle, error="raised after it", delay_ms=0))
    again = claimed(scene)
    assert again.attempt == 2
    said = start(scene, again, "charge", key="charge:order-7")
    assert (said.next, plain(said.receipt), said.attempt) == (Next.DONE, "ch_1", 1)


def test_ck_08_effects_of_tasks_with_equal_input_are_two(scene):
    one, two = scene.held("one"), scene.held("two")
    end(scene, one, start(scene, one), receipt="mine")
    assert start(scene, two).next is Next.GO
