"""effects, by `lease.run()`: recorded before they are tried, and tried again only where the contract allows it."""

from __future__ import annotations

from typing import Any

import pytest

from relet.client.durable.contracts import Keyed, Natural, Queryable
from relet.core.errors import Conflict, LeaseLost, LeaseStopped, NotApplied
from relet.core.model import State
from relet.core.work import EffectState
from relet.testing.conformance.evidence import refused
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import causes, expire, held, taken, unanswered, unknown_effect

PAYLOAD = {"amount": 5}


class Sink:
    """The other side: notes each call, and answers, refuses, or is not heard."""

    def __init__(self, *answers: Any) -> None:
        self.calls: list[Any] = []
        self._answers = list(answers)

    def pay(self, payload: Any, effect: Any) -> Any:
        """A call that has reached it."""
        self.calls.append((payload, effect.key, effect.attempt, effect.repeated))
        answer = self._answers.pop(0) if self._answers else {"id": len(self.calls)}
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_an_effect_happens_once_whoever_holds_the_task(route: Route) -> None:
    sink = Sink()
    first = held(route)
    with first.run() as run:
        assert run.effect("pay", PAYLOAD, sink.pay) == {"id": 1}
        first.fail("raised after it", delay=0)
    second = taken(route, by=route.other)
    with second.run() as run:
        assert run.effect("pay", PAYLOAD, sink.pay) == {"id": 1}
        second.complete("done")
    assert len(sink.calls) == 1
    (effect,) = route.db.effects()
    assert (effect.task_id, effect.name, effect.state, effect.tries) == ("t", "pay", EffectState.SUCCEEDED, 1)
    assert (effect.receipt, effect.token, effect.reconciled_by) == ({"id": 1}, first.token, None)
    assert causes(route).count("effect_started") == causes(route).count("effect_ended") == 1


def test_the_same_key_with_another_payload_is_refused_and_not_sent(route: Route) -> None:
    sink = Sink()
    lease = held(route)
    with lease.run() as run:
        run.effect("pay", PAYLOAD, sink.pay)
        with refused(route, Conflict, field="payload", name="pay") as caught:
            run.effect("pay", {"amount": 6}, sink.pay)
        lease.release()
    assert caught.value.code == "RELET-EFFECT-CONFLICT"
    assert len(sink.calls) == 1


def test_what_nobody_knows_waits_for_a_person_and_is_not_tried_again(route: Route) -> None:
    effect = unknown_effect(route)
    assert (effect.state, effect.receipt) == (EffectState.UNKNOWN, None)
    assert "TimeoutError" in (effect.error or "")
    task = route.db.task("t")
    assert (task.state, task.waiting_for) == (State.WAITING, f"effect:{effect.id}")
    assert route.db.claim("reports") is None


@pytest.mark.parametrize("contract", [Natural, Keyed("24h")], ids=["natural", "keyed"])
def test_what_the_contract_lets_be_repeated_is_repeated_by_the_next_attempt_under_the_same_key(
    route: Route, contract: Any
) -> None:
    sink = Sink(TimeoutError("no answer"))
    lease = held(route)
    with pytest.raises(TimeoutError), lease.run() as run:
        run.effect("pay", PAYLOAD, sink.pay, contract=contract)
    route.clock.advance("1h")
    lease = taken(route)
    with lease.run() as run:
        assert run.effect("pay", PAYLOAD, sink.pay, contract=contract) == {"id": 2}
        lease.complete("done")
    (_, key, *first), (_, again, *second) = sink.calls
    assert key == again
    assert (first, second) == ([1, False], [2, True])


def test_a_key_that_the_other_side_may_have_forgotten_is_not_repeated(route: Route) -> None:
    sink = Sink(TimeoutError("no answer"))
    lease = held(route)
    with pytest.raises(TimeoutError), lease.run() as run:
        run.effect("pay", PAYLOAD, sink.pay, contract=Keyed("1h"))
    route.clock.advance("54m")  # an hour, less a tenth
    lease = taken(route)
    with lease.run() as run:
        run.effect("pay", PAYLOAD, sink.pay, contract=Keyed("1h"))
    assert len(sink.calls) == 1
    assert route.db.task("t").state is State.WAITING


def test_what_can_be_asked_about_is_asked_about(route: Route) -> None:
    sink = Sink(TimeoutError("no answer"))
    lease = held(route)
    with lease.run() as run:
        found = run.effect("pay", PAYLOAD, sink.pay, contract=Queryable(lambda _, effect: {"ref": effect.key}))
        lease.complete("done")
    assert found == {"ref": sink.calls[0][1]}
    assert route.db.effects()[0].receipt == found


def test_what_was_certainly_not_applied_is_tried_again_whatever_the_contract(route: Route) -> None:
    sink = Sink(NotApplied("409"))
    lease = held(route)
    with pytest.raises(NotApplied), lease.run() as run:
        run.effect("pay", PAYLOAD, sink.pay)
    assert route.db.effects(state="failed")[0].error == "409"
    route.clock.advance("1h")
    lease = taken(route)
    with lease.run() as run:
        assert run.effect("pay", PAYLOAD, sink.pay) == {"id": 2}
        lease.complete("done")
    assert [call[3] for call in sink.calls] == [False, False]


def test_a_holder_that_is_lost_in_the_middle_of_a_call_leaves_it_unknown_and_its_receipt_as_evidence(
    route: Route,
) -> None:
    first = held(route)

    def slow(_: Any, effect: Any) -> Any:
        expire(route, first)
        return {"ref": effect.key}

    with pytest.raises((LeaseLost, LeaseStopped)), first.run() as run:
        run.effect("pay", PAYLOAD, slow)
    route.db.sweep()
    (effect,) = route.db.effects(state="unknown")
    assert route.db.history("t")[-1].kind == "lapsed"
    lease = taken(route)
    with lease.run() as run:
        if effect.evidence:
            assert run.effect("pay", PAYLOAD, unanswered) == effect.evidence[0].receipt
            lease.complete("done")
        else:
            run.effect("pay", PAYLOAD, unanswered)
    assert (route.db.effects(state="unknown") == []) is bool(effect.evidence)


def test_a_task_is_not_completed_while_an_effect_of_it_is_unknown(route: Route) -> None:
    sink = Sink(TimeoutError("no answer"))
    lease = held(route)
    with pytest.raises(TimeoutError), lease.run() as run:
        run.effect("pay", PAYLOAD, sink.pay, contract=Natural())
    route.clock.advance("1h")
    lease = taken(route)
    with refused(route, Conflict, task_id="t") as caught:
        lease.complete("done")
    (effect,) = route.db.effects(state="unknown")
    assert (caught.value.code, caught.value.detail["effects"]) == ("RELET-EFFECT-OPEN", [effect.id])
    assert effect.id in str(caught.value)
    route.db.reconcile(effect.id, "applied", {"ref": 1})
    assert lease.complete("done") is None


def test_a_business_key_is_one_effect_for_all_tasks_of_the_tenant_and_of_no_other(route: Route) -> None:
    sink = Sink()
    for name in ("a", "b"):
        lease = held(route, name)
        with lease.run() as run:
            assert run.effect("pay", PAYLOAD, sink.pay, key="order-7") == {"id": 1}
            lease.complete("done")
    assert len(sink.calls) == 1
    assert route.stranger.effects() == []


def test_effects_are_listed_by_state_and_task_in_pages(route: Route) -> None:
    sink = Sink()
    lease = held(route, "a")
    with lease.run() as run:
        for n in range(3):
            run.effect(f"e{n}", PAYLOAD, sink.pay)
        lease.complete("done")
    unknown_effect(route, "b")
    assert [effect.name for effect in route.db.effects()] == ["e0", "e1", "e2", "pay"]
    assert [effect.name for effect in route.other.effects(state="unknown")] == ["pay"]
    assert [effect.name for effect in route.other.effects(task_id="a", limit=2)] == ["e0", "e1"]
    first = route.db.effects(limit=3)
    assert [effect.name for effect in route.db.effects(after=first[-1].id)] == ["pay"]
