"""claim by task_id: this very task, in every state, with and without the handle of its last lease."""

from __future__ import annotations

import pytest

from relet.core.errors import Conflict, NotFound
from relet.core.model import LostReason, State
from relet.testing.conformance.evidence import lost, refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import (
    QUEUE,
    STATES,
    TTL_S,
    brought_to,
    causes,
    date,
    delay_ms,
    expire,
    held,
    ready,
    taken,
)

FINISHED = [state for state in STATES if state not in {State.READY, State.LEASED}]


def test_a_ready_task_is_granted_whatever_its_place_in_the_queue(route: Route) -> None:
    ready(route, "first", priority=9)
    ready(route, "t")
    lease = route.db.claim(task_id="t", holder="A", ttl=30)
    assert lease is not None
    assert (lease.task_id, lease.holder, lease.ttl, lease.attempt) == ("t", "A", 30, 1)


def test_a_task_that_is_held_is_not_granted(route: Route) -> None:
    lease = held(route)
    route.clock.advance("59999ms")
    with unchanged(route):
        assert route.other.claim(task_id="t", holder="B") is None
        assert route.other.claim(task_id="t", holder="A", handle=lease.handle) is None


@pytest.mark.parametrize("late", [0, 1])
def test_the_old_holder_may_ask_for_its_expired_task_and_the_loss_is_counted(route: Route, late: int) -> None:
    first = held(route)
    ready(route, "other", priority=9)
    route.clock.advance(f"{TTL_S * 1_000 + late}ms")
    second = route.db.claim(task_id="t", holder="A", handle=first.handle)
    assert second is not None
    assert second.token > first.token
    assert (second.attempt, route.db.task("t").losses) == (2, 1)
    assert second.took_over is not None and second.took_over.token == first.token
    assert causes(route) == ["submitted", "claimed", "lapsed", "claimed"]
    with lost(route, LostReason.SUPERSEDED):
        first.complete("late")
    second.complete("in time")
    assert route.db.result("t") == "in time"


@pytest.mark.parametrize("state", FINISHED)
def test_a_finished_task_is_a_conflict_that_names_its_state(route: Route, state: State) -> None:
    last = brought_to(route, state)
    with refused(route, Conflict, field="task_id", state=str(state)) as caught:
        route.db.claim(task_id="t")
    assert str(state) in str(caught.value)
    if last is not None:
        with refused(route, Conflict, state=str(state)):
            route.db.claim(task_id="t", handle=last.handle)


def test_an_unknown_task_is_not_found(route: Route) -> None:
    with refused(route, NotFound, field="task_id", task_id="nobody"):
        route.db.claim(task_id="nobody")


def test_a_delayed_task_waits_for_its_time_without_a_handle(route: Route) -> None:
    ready(route, delay=30)
    route.clock.advance("29999ms")
    with unchanged(route):
        assert route.db.claim(task_id="t") is None
    route.clock.advance("1ms")
    assert route.db.claim(task_id="t") is not None


def test_a_task_delayed_by_the_wall_clock_waits_for_that_clock(route: Route) -> None:
    ready(route, delay="2h")
    route.clock.step(7_200 - 0.001)
    assert route.db.claim(task_id="t") is None
    route.clock.step(0.001)
    assert route.db.claim(task_id="t") is not None


def test_the_last_holder_takes_its_task_before_the_delay_ends(route: Route) -> None:
    first = held(route)
    first.release(delay="2h")
    with unchanged(route):
        assert route.db.claim(task_id="t") is None
    second = route.other.claim(task_id="t", handle=first.handle)
    assert second is not None
    assert second.token > first.token
    assert route.db.task("t").due_at is None


def test_the_last_holder_takes_its_task_before_the_backoff_of_a_second_loss_ends(route: Route) -> None:
    expire(route, held(route))
    second = taken(route)
    expire(route, second)
    assert route.db.sweep() == 1
    assert delay_ms(route) >= 1_000
    assert route.db.claim(task_id="t") is None
    third = route.db.claim(task_id="t", handle=second.handle)
    assert third is not None
    assert third.attempt == 3


def test_a_handle_of_an_earlier_lease_does_not_shorten_the_delay(route: Route) -> None:
    first = held(route)
    first.release()
    taken(route).release(delay=30)
    with unchanged(route):
        assert route.db.claim(task_id="t", handle=first.handle) is None


def test_a_handle_of_another_task_does_not_shorten_the_delay(route: Route) -> None:
    stranger = held(route, "u")
    held(route, "t").release(delay=30)
    with unchanged(route):
        assert route.db.claim(task_id="t", handle=stranger.handle) is None


def test_a_handle_that_proves_nothing_is_refused(route: Route) -> None:
    lease = held(route)
    lease.release(delay=30)
    parts = lease.handle.split(".")
    forged = ".".join([parts[0], parts[1], "0" * len(parts[2]), parts[3]])
    with refused(route, NotFound, field="handle"):
        route.db.claim(task_id="t", handle=forged)


def test_a_paused_queue_keeps_its_tasks_from_their_last_holder_too(route: Route) -> None:
    lease = held(route)
    lease.release()
    route.db.queue(QUEUE, paused=True)
    with unchanged(route):
        assert route.db.claim(task_id="t", handle=lease.handle) is None


def test_a_busy_exclusive_key_keeps_the_task_from_its_last_holder_too(route: Route) -> None:
    first = held(route, "t", exclusive="site")
    first.release()
    held(route, "u", queue="elsewhere", exclusive="site")
    with unchanged(route):
        assert route.db.claim(task_id="t", handle=first.handle) is None


def test_the_loss_that_a_claim_observes_may_be_the_last_one(route: Route) -> None:
    lease = held(route, max_losses=1)
    expire(route, lease)
    with pytest.raises(Conflict) as caught:
        route.db.claim(task_id="t", handle=lease.handle)
    assert caught.value.detail["state"] == "failed"
    task = route.db.task("t")
    assert (task.state, task.reason, task.losses) == (State.FAILED, "losses", 1)


def test_a_task_whose_holder_died_after_a_cancel_is_cancelled_and_not_granted(route: Route) -> None:
    lease = held(route)
    route.db.cancel("t", "enough")
    expire(route, lease)
    with pytest.raises(Conflict) as caught:
        route.db.claim(task_id="t", handle=lease.handle)
    assert caught.value.detail["state"] == "cancelled"
    assert route.db.task("t").losses == 0


def test_a_task_past_its_deadline_is_a_dead_letter_and_not_granted(route: Route) -> None:

    ready(route, deadline=date(route, 30))
    route.clock.advance(30)
    with pytest.raises(Conflict) as caught:
        route.db.claim(task_id="t")
    assert caught.value.detail["state"] == "failed"
    assert route.db.task("t").reason == "deadline"
