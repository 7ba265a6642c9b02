"""decide: a person's answer; the first one stands, and counts for the very question that was shown."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from relet.core.errors import Conflict, NotFound
from relet.core.model import State
from relet.core.work import DecisionKind
from relet.testing.conformance.evidence import refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, STATES, brought_to, causes, held, in_background, parked, taken


@pytest.mark.parametrize(
    ("kind", "value", "accepted"),
    [("accept", None, True), ("edit", {"draft": "rye"}, True), ("respond", "why?", False), ("ignore", None, False),
     ("deny", {"because": "no"}, False)],
)  # fmt: skip
def test_each_kind_of_decision_is_kept_with_its_value_and_makes_the_task_ready(
    route: Route, kind: str, value: Any, accepted: bool
) -> None:
    parked(route)
    asked = route.db.waits("t")[0]
    told = route.other.decide("t", "publish", kind, value, by="ann")
    assert (told.name, told.n, told.kind, told.value, told.by) == ("publish", 1, kind, value, "ann")
    assert (told.accepted, told.digest) == (accepted, asked.digest)
    assert route.db.task("t").state is State.READY
    assert route.db.history("t")[-1].detail["by"] == "ann"
    assert taken(route).answer("publish") == told


def test_a_task_that_nobody_knows_cannot_be_decided_about(route: Route) -> None:
    with refused(route, NotFound, field="task_id"):
        route.db.decide("nobody", "publish", "accept")


@pytest.mark.parametrize("state", STATES)
def test_a_decision_for_no_open_question_is_refused_and_not_kept(route: Route, state: State) -> None:
    brought_to(route, state)
    name = "other" if state is State.WAITING else "publish"
    with refused(route, Conflict, field="name", state=str(state)) as caught:
        route.db.decide("t", name, "accept")
    assert caught.value.code == "RELET-NOT-ASKED"


def test_an_early_decision_answers_no_later_question(route: Route) -> None:
    lease = held(route)
    with refused(route, Conflict):
        route.db.decide("t", "publish", "accept")
    assert lease.park("publish").state is State.WAITING


def test_the_first_decision_stands_and_others_are_told_of_it(route: Route) -> None:
    parked(route)
    told = route.db.decide("t", "publish", "accept", by="ann")
    with unchanged(route):
        assert route.other.decide("t", "publish", "accept", by="ann") == told
    for other in (("accept", None, "bob"), ("deny", None, "ann"), ("accept", 1, "ann")):
        with refused(route, Conflict, decision="accept", by="ann", n=1) as caught:
            route.other.decide("t", "publish", *other)
        assert caught.value.code == "RELET-ALREADY-DECIDED"
        assert "ann" in str(caught.value)


def test_of_many_who_decide_at_once_one_is_heard(route: Route) -> None:
    parked(route)

    def decide(client: Any, who: str) -> Any:
        try:
            return client.decide("t", "publish", "accept", by=who)
        except Conflict as late:
            return late

    clients = [route.db, route.other] * 3
    calls = [in_background(partial(decide, client, f"p{n}")) for n, client in enumerate(clients)]
    answers = [call() for call in calls]
    heard = [answer for answer in answers if not isinstance(answer, Conflict)]
    assert len(heard) == 1
    late = [answer.detail["by"] for answer in answers if isinstance(answer, Conflict)]
    assert late == [heard[0].by] * 5
    assert causes(route).count("answered") == 1


def test_a_decision_with_the_digest_of_what_was_shown_answers_that_and_nothing_else(route: Route) -> None:
    parked(route, ask={"delete": 5})
    old = route.db.waits("t")[0].digest
    route.db.decide("t", "publish", "deny", digest=old)
    taken(route).park("publish", ask={"delete": 9})
    with refused(route, Conflict) as caught:
        route.db.decide("t", "publish", "accept", digest=old)
    assert caught.value.code == "RELET-OTHER-QUESTION"
    new = route.db.waits("t")[1].digest
    assert caught.value.detail["digest"] == new
    assert route.db.decide("t", "publish", "accept", digest=new).digest == new


def test_an_answer_at_the_instant_of_the_timeout_is_too_late(route: Route) -> None:
    parked(route, timeout=60, default="deny")
    route.clock.advance(60)
    with pytest.raises(Conflict) as caught:
        route.db.decide("t", "publish", "accept", by="ann")
    assert (caught.value.code, caught.value.detail["decision"]) == ("RELET-WAIT-OVER", "deny")
    found = taken(route).answer("publish")
    assert found is not None
    assert (found.kind, found.by) == (DecisionKind.DENY, "timeout")


def test_a_last_moment_answer_is_in_time(route: Route) -> None:
    parked(route, timeout=60, default="deny")
    route.clock.advance("59999ms")
    assert route.db.decide("t", "publish", "accept").accepted
    route.clock.advance("1ms")
    assert route.db.sweep() == 0


def test_an_answer_after_a_cancel_is_refused(route: Route) -> None:
    parked(route)
    route.db.cancel("t")
    with refused(route, Conflict, state="cancelled"):
        route.db.decide("t", "publish", "accept")


def test_who_waits_for_a_signal_is_not_decided_about(route: Route) -> None:
    parked(route, "go", "signal")
    with refused(route, Conflict, field="name", wait="signal") as caught:
        route.db.decide("t", "go", "accept")
    assert "relet signal t go" in str(caught.value)


def test_a_task_of_another_tenant_is_neither_seen_nor_answered(route: Route) -> None:
    parked(route)
    with refused(route, NotFound):
        route.stranger.decide("t", "publish", "accept")
    assert route.stranger.waits() == route.stranger.waits(queue=QUEUE) == []
    with pytest.raises(NotFound):
        route.stranger.waits("t")
