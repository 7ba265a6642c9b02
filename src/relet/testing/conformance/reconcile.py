"""reconcile: a person says what became of an effect that nobody knows."""

from __future__ import annotations

from typing import Any

import pytest

from relet.core.errors import Conflict, NotFound
from relet.core.model import State
from relet.core.work import EffectState
from relet.testing.conformance.evidence import refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import held, taken, unanswered, unknown_effect

PAYLOAD = {"amount": 5}


def test_applied_lets_the_task_go_on_with_the_receipt_and_nothing_is_called(route: Route) -> None:
    effect = unknown_effect(route)
    told = route.other.reconcile(effect.id, "applied", {"ref": "ch_1"}, by="ann")
    assert (told.state, told.receipt, told.reconciled_by) == (EffectState.SUCCEEDED, {"ref": "ch_1"}, "ann")
    assert route.db.task("t").state is State.READY
    lease = taken(route)
    with lease.run() as run:
        assert run.effect("pay", PAYLOAD, unanswered) == {"ref": "ch_1"}
        lease.complete("done")
    assert route.db.task("t").state is State.DONE


def test_not_applied_lets_it_be_tried_once(route: Route) -> None:
    effect = unknown_effect(route)
    assert route.db.reconcile(effect.id, "not_applied").state is EffectState.FAILED
    lease = taken(route)
    with lease.run() as run:
        assert run.effect("pay", PAYLOAD, lambda _, effect: effect.attempt) == 2
        lease.complete("done")
    assert route.db.effects()[0].tries == 2


def test_a_receipt_may_be_nothing_at_all(route: Route) -> None:
    effect = unknown_effect(route)
    assert route.db.reconcile(effect.id, "applied").receipt is None
    lease = taken(route)
    with lease.run() as run:
        assert run.effect("pay", PAYLOAD, unanswered) is None
        lease.complete("done")


def test_the_same_finding_said_twice_is_said_once_and_another_is_refused(route: Route) -> None:
    effect = unknown_effect(route)
    told = route.db.reconcile(effect.id, "applied", "ch_1", by="ann")
    with unchanged(route):
        assert route.other.reconcile(effect.id, "applied", "ch_1", by="bob") == told
    for other in (("applied", "ch_2"), ("not_applied", None)):
        with refused(route, Conflict, effect=effect.id, state="succeeded") as caught:
            route.db.reconcile(effect.id, *other)
        assert caught.value.code == "RELET-EFFECT-SETTLED"
        assert "ann" in str(caught.value)


def test_an_effect_that_nobody_started_or_of_another_tenant_is_not_found(route: Route) -> None:
    effect = unknown_effect(route)
    with refused(route, NotFound, field="effect_id"):
        route.db.reconcile("e-none", "applied")
    with refused(route, NotFound, field="effect_id"):
        route.stranger.reconcile(effect.id, "applied")


def test_a_try_under_way_is_not_settled_by_others(route: Route) -> None:
    lease = held(route)
    seen: list[Any] = []

    def meanwhile(_: Any, effect: Any) -> str:
        with pytest.raises(Conflict) as caught:
            route.db.reconcile(effect.id, "not_applied")
        seen.append(caught.value.code)
        return "ch_1"

    with lease.run() as run:
        assert run.effect("pay", PAYLOAD, meanwhile) == "ch_1"
        lease.complete("done")
    assert seen == ["RELET-EFFECT-BUSY"]


def test_a_task_that_was_cancelled_meanwhile_stays_so(route: Route) -> None:
    effect = unknown_effect(route)
    route.db.cancel("t", "enough")
    route.db.reconcile(effect.id, "applied", "ch_1")
    assert route.db.task("t").state is State.CANCELLED
    assert route.db.effects(state="succeeded")[0].receipt == "ch_1"
