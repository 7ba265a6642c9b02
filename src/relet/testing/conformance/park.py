"""park and answer: a task that waits without a holder, until somebody answers or time does."""

from __future__ import annotations

from typing import Any

import pytest

from relet.core.errors import Conflict
from relet.core.model import LostReason, State
from relet.core.work import DecisionKind, WaitKind
from relet.testing.conformance.evidence import lost, lost_by_lapse, refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, causes, expire, held, ms_until, parked, ready, taken

ASK = {"draft": "grain", "pages": [1, 2]}


@pytest.mark.case("AP-07")
def test_a_parked_task_has_no_holder_and_costs_no_attempt(route: Route) -> None:
    lease = held(route)
    ended = lease.park("publish", ask=ASK)
    assert (ended.state, ended.delay_ms) == (State.WAITING, 0)
    task = route.db.task("t")
    assert (task.state, task.live, task.waiting_for, task.due_at) == (State.WAITING, False, "publish", None)
    assert route.other.claim(QUEUE, holder="B") is None
    route.clock.advance("30d")
    assert route.db.sweep() == 0
    task = route.db.task("t")
    assert (task.attempt, task.failures, task.losses) == (1, 0, 0)
    assert causes(route) == ["submitted", "claimed", "parked"]


def test_what_is_asked_is_seen_by_everybody(route: Route) -> None:
    lease = parked(route, ask=ASK, timeout="2h")
    for waits in (route.db.waits(), route.other.waits("t"), route.db.waits(queue=QUEUE)):
        (wait,) = waits
        assert (wait.task_id, wait.queue, wait.name, wait.n) == ("t", QUEUE, "publish", 1)
        assert (wait.kind, wait.ask, wait.token) == (WaitKind.APPROVAL, ASK, lease.token)
        assert (wait.open, wait.decision, ms_until(route, wait.due_at)) == (True, None, 7_200_000)
    assert route.db.waits(queue="elsewhere") == []


@pytest.mark.case("AP-07")
def test_the_next_holder_has_a_larger_token_and_reads_the_answer(route: Route) -> None:
    first = parked(route, ask=ASK)
    assert first.answer("publish") is None
    told = route.other.decide("t", "publish", "edit", {"draft": "rye"}, by="ann")
    second = taken(route, by=route.other, holder="B")
    assert second.token > first.token
    assert (second.attempt, second.took_over) == (1, None)
    found = second.answer("publish")
    assert found == told
    assert found is not None
    assert (found.kind, found.value, found.by, found.accepted) == (DecisionKind.EDIT, {"draft": "rye"}, "ann", True)
    assert second.answer("other") is None
    assert causes(route) == ["submitted", "claimed", "parked", "answered", "claimed"]


def test_after_a_park_no_verb_of_the_lease_is_taken(route: Route) -> None:
    lease = parked(route)
    for verb in (lease.renew, lambda: lease.save(1), lambda: lease.complete("x"), lease.release):
        with lost(route, LostReason.CLOSED, token=lease.token):
            verb()


def test_the_same_park_said_twice_has_one_effect_and_other_content_is_a_conflict(route: Route) -> None:
    lease = held(route)
    ended = lease.park("publish", ask=ASK, timeout=60)
    with unchanged(route):
        assert lease.park("publish", ask=ASK, timeout=60) == ended
    with refused(route, Conflict, task_id="t"):
        lease.park("publish", ask={"draft": "rye"}, timeout=60)
    assert route.db.waits()[0].ask == ASK


def test_a_park_after_a_cancel_is_refused(route: Route) -> None:
    lease = held(route)
    route.other.cancel("t", "enough")
    with lost(route, LostReason.CANCELLED):
        lease.park("publish")
    assert route.db.waits("t") == []


def test_a_park_after_the_expiry_is_refused(route: Route) -> None:
    lease = held(route)
    expire(route, lease)
    with lost_by_lapse(route, lease.token):
        lease.park("publish")
    assert route.db.waits("t") == []


@pytest.mark.parametrize(
    ("default", "kind", "value"),
    [
        (None, DecisionKind.TIMEOUT, None),
        ("deny", DecisionKind.DENY, None),
        ({"kind": "edit", "value": {"draft": "short"}}, DecisionKind.EDIT, {"draft": "short"}),
    ],
    ids=["no default", "a kind", "a kind with its value"],
)
def test_at_the_instant_of_its_timeout_a_question_is_answered_by_its_default(
    route: Route, default: Any, kind: DecisionKind, value: Any
) -> None:
    parked(route, timeout="2h", default=default)
    route.clock.advance("7199999ms")
    assert route.other.claim(QUEUE) is None
    route.clock.advance("1ms")
    lease = taken(route, by=route.other)
    found = lease.answer("publish")
    assert found is not None
    assert (found.kind, found.value, found.by) == (kind, value, "timeout")
    assert found.accepted is (kind is DecisionKind.EDIT)
    assert causes(route).count("answered") == 1


def test_a_sweep_ends_what_has_run_out_of_time(route: Route) -> None:
    parked(route, timeout=60)
    ready(route, "other")
    route.clock.advance(60)
    assert route.db.sweep() == 1
    assert (route.db.task("t").state, route.db.sweep()) == (State.READY, 0)


def test_a_claim_of_this_very_task_ends_a_wait_that_is_over(route: Route) -> None:
    parked(route, kind="timer", timeout=60)
    with refused(route, Conflict, state="waiting"):
        route.db.claim(task_id="t")
    route.clock.advance(60)
    lease = route.db.claim(task_id="t")
    assert lease is not None
    assert lease.answer("publish") is not None


def test_a_timer_ends_by_time_alone(route: Route) -> None:
    parked(route, kind="timer", timeout="30d")
    with refused(route, Conflict, field="name"):
        route.db.decide("t", "publish", "accept")
    assert not route.db.signal("t", "publish").taken
    route.clock.advance("30d")
    assert taken(route).attempt == 1


def test_questions_of_one_name_are_told_apart_by_their_number(route: Route) -> None:
    lease = parked(route)
    route.db.decide("t", "publish", "deny", by="ann")
    lease = taken(route)
    lease.park("publish")
    route.db.decide("t", "publish", "accept", by="bob")
    lease = taken(route)
    found = lease.answer("publish")
    assert found is not None
    assert (found.n, found.kind, found.by) == (2, DecisionKind.ACCEPT, "bob"), "the newest"
    assert [(wait.n, wait.decision and wait.decision.kind) for wait in route.db.waits("t")] == [
        (1, DecisionKind.DENY), (2, DecisionKind.ACCEPT),
    ]  # fmt: skip


def test_a_decision_stays_readable_by_every_later_holder(route: Route) -> None:
    parked(route)
    told = route.db.decide("t", "publish", "respond", "later", by="ann")
    lease = taken(route)
    lease.fail("no", retry=False)
    route.db.requeue("t")
    again = taken(route, by=route.other)
    assert again.answer("publish") == lease.answer("publish") == told
    again.complete()
    assert route.db.waits("t")[0].decision == told


def test_a_cancel_ends_the_wait_and_asks_nothing_any_more(route: Route) -> None:
    parked(route, timeout=60)
    task = route.db.cancel("t", "enough")
    assert (task.state, task.waiting_for, task.due_at) == (State.CANCELLED, None, None)
    assert route.db.waits() == []
    route.clock.advance(60)
    assert route.db.sweep() == 0
