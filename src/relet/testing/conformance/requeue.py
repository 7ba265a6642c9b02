"""requeue: another life for a dead letter or a cancelled task; an operator's verb."""

from __future__ import annotations

import pytest

from relet.core.errors import Conflict, NotFound
from relet.core.model import LostReason, State
from relet.testing.conformance.evidence import lost, refused
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, brought_to, causes, date, expire, held, ready, taken, wear_out


def test_a_dead_letter_is_ready_again(route: Route) -> None:
    wear_out(route)
    task = route.db.requeue("t")
    assert (task.state, task.reason, task.due_at) == (State.READY, None, None)
    assert (task.failures, task.losses) == (0, 0)
    assert taken(route, by=route.other).task_id == "t"
    assert causes(route) == ["submitted", "claimed", "failed", "requeued", "claimed"]


def test_a_cancelled_task_is_ready_again(route: Route) -> None:
    ready(route)
    route.db.cancel("t", "not needed")
    task = route.db.requeue("t")
    assert (task.state, task.reason, task.cancel_requested) == (State.READY, None, False)
    taken(route).complete("after all")
    assert route.db.result("t") == "after all"


@pytest.mark.parametrize("state", [State.READY, State.LEASED, State.DONE])
def test_anything_else_is_a_conflict_that_names_its_state(route: Route, state: State) -> None:
    brought_to(route, state)
    with refused(route, Conflict, state=str(state), task_id="t") as caught:
        route.db.requeue("t")
    assert str(state) in str(caught.value)


def test_an_unknown_task_is_not_found(route: Route) -> None:
    with refused(route, NotFound, task_id="nobody"):
        route.db.requeue("nobody")


def test_the_attempt_keeps_growing_while_the_limits_count_anew(route: Route) -> None:
    ready(route, max_attempts=2)
    taken(route).fail("no", delay=0)
    taken(route).fail("no", delay=0)
    assert route.db.task("t").reason == "attempts"
    route.db.requeue("t")
    third = taken(route)
    assert third.attempt == 3
    assert third.fail("no", delay=0).state is State.READY
    fourth = taken(route)
    assert fourth.attempt == 4
    assert fourth.fail("no", delay=0).reason == "attempts"


def test_losses_in_a_row_count_anew(route: Route) -> None:
    ready(route, max_losses=1)
    expire(route, taken(route))
    assert route.db.sweep() == 1
    assert route.db.requeue("t").losses == 0
    lease = taken(route)
    assert lease.attempt == 2
    expire(route, lease)
    assert route.db.sweep() == 1
    assert route.db.task("t").reason == "losses"


def test_tokens_of_the_earlier_life_stay_refused(route: Route) -> None:
    first = wear_out(route)
    route.db.requeue("t")
    second = taken(route)
    assert second.token > first.token
    for verb in (first.renew, lambda: first.save(1), lambda: first.complete(1), first.release):
        with lost(route, LostReason.CLOSED):
            verb()
    assert second.renew() > 0


def test_a_deadline_that_has_passed_does_not_bury_it_again(route: Route) -> None:
    ready(route, deadline=date(route, 30))
    route.clock.advance(31)
    assert route.db.sweep() == 1
    task = route.db.requeue("t")
    assert task.deadline is None
    assert taken(route).task_id == "t"


def test_a_deadline_still_ahead_is_kept(route: Route) -> None:
    ready(route, deadline=date(route, 30))
    route.db.cancel("t")
    assert route.db.requeue("t").deadline == date(route, 30)
    route.clock.advance(30)
    assert route.db.claim(QUEUE) is None
    assert route.db.task("t").reason == "deadline"


def test_a_result_can_be_waited_for_again(route: Route) -> None:
    held(route).fail("no", retry=False)
    route.db.requeue("t")
    with pytest.raises(TimeoutError):
        route.db.result("t")
