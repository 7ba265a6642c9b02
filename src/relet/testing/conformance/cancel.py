"""cancel: at once when nobody holds the task, else when its holder gives way; commit order decides."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from relet.core.errors import Conflict, Error, LeaseLost, NotFound
from relet.core.model import LostReason, State
from relet.testing.conformance.evidence import lost, refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, brought_to, causes, expire, held, in_background, ready, taken


def test_a_task_that_nobody_holds_is_cancelled_at_once(route: Route) -> None:
    ready(route)
    task = route.db.cancel("t", "not needed")
    assert (task.state, task.reason, task.cancel_requested) == (State.CANCELLED, "not needed", False)
    assert route.other.claim(QUEUE) is None
    assert causes(route) == ["submitted", "cancelled"]


def test_a_delayed_task_is_cancelled_at_once_and_never_falls_due(route: Route) -> None:
    ready(route, "short", delay=30)
    ready(route, "long", delay="2h")
    for name in ("short", "long"):
        assert route.db.cancel(name).state is State.CANCELLED
    route.clock.advance("3h")
    assert route.db.claim_many(QUEUE, 5) == []
    assert route.db.stats().queues[0].delayed == 0


def test_a_held_task_stays_with_its_holder_until_that_gives_way(route: Route) -> None:
    held(route)
    task = route.other.cancel("t", "enough")
    assert (task.state, task.live, task.cancel_requested) == (State.LEASED, True, True)
    assert route.db.claim(QUEUE) is None
    assert causes(route) == ["submitted", "claimed", "cancel_requested"]


def test_after_a_cancel_the_holder_may_only_give_way(route: Route) -> None:
    lease = held(route)
    route.other.cancel("t", "enough")
    for verb in (lease.renew, lambda: lease.save(1), lambda: lease.complete("done")):
        with lost(route, LostReason.CANCELLED, token=lease.token, current_token=lease.token) as caught:
            verb()
        assert "enough" in str(caught.value)
    assert route.db.rejections("t")[0].result == "done", "the result is kept beside the refusal"


@pytest.mark.parametrize("verb", ["release", "fail", "fail for good", "release later"])
def test_giving_way_makes_it_cancelled(route: Route, verb: str) -> None:
    lease = held(route)
    route.other.cancel("t", "enough")
    match verb:
        case "release":
            ended = lease.release()
        case "release later":
            ended = lease.release(delay=60)
        case "fail":
            ended = lease.fail("stopped")
        case _:
            ended = lease.fail("stopped", retry=False)
    assert (ended.state, ended.reason) == (State.CANCELLED, "enough")
    task = route.db.task("t")
    assert (task.state, task.reason, task.cancel_requested) == (State.CANCELLED, "enough", False)
    assert (task.failures, task.losses, task.attempt, task.due_at) == (0, 0, 1, None)
    assert causes(route)[-2:] == ["cancel_requested", "cancelled"]


def test_giving_way_twice_is_answered_alike(route: Route) -> None:
    lease = held(route)
    route.other.cancel("t", "enough")
    ended = lease.release()
    with unchanged(route):
        assert lease.release() == ended


def test_a_holder_that_dies_after_a_cancel_leaves_a_cancelled_task_and_no_loss(route: Route) -> None:
    lease = held(route)
    route.db.cancel("t", "enough")
    route.clock.advance("59999ms")
    assert route.db.sweep() == 0
    route.clock.advance("1ms")
    assert route.db.sweep() == 1
    task = route.db.task("t")
    assert (task.state, task.reason, task.losses, task.attempt) == (State.CANCELLED, "enough", 0, 1)
    with lost(route, LostReason.CANCELLED):
        lease.complete("late")


def test_a_cancel_that_finds_the_lease_expired_cancels_at_once(route: Route) -> None:
    lease = held(route)
    expire(route, lease)
    task = route.db.cancel("t", "enough")
    assert (task.state, task.reason, task.live) == (State.CANCELLED, "enough", False)
    assert route.db.sweep() == 0
    with lost(route, LostReason.EXPIRED):
        lease.renew()


@pytest.mark.parametrize("state", [State.DONE, State.FAILED])
def test_what_is_finished_is_a_conflict(route: Route, state: State) -> None:
    brought_to(route, state)
    with refused(route, Conflict, state=str(state), task_id="t"):
        route.db.cancel("t")


def test_cancelling_again_changes_nothing_and_keeps_the_first_reason(route: Route) -> None:
    ready(route, "idle")
    held(route, "t2", queue="elsewhere")
    for name in ("idle", "t2"):
        first = route.db.cancel(name, "first")
        with unchanged(route):
            again = route.other.cancel(name, "second")
        assert (again.state, again.reason) == (first.state, first.reason)
    assert route.db.task("idle").reason == "first"
    taken_back = route.db.history("t2")[-1]
    assert taken_back.detail["reason"] == "first"


def test_an_unknown_task_is_not_found(route: Route) -> None:
    with refused(route, NotFound, task_id="nobody"):
        route.db.cancel("nobody")


def test_cs_05_a_cancel_of_nobody_is_kept_nowhere_and_hits_no_later_task_of_that_id(route: Route) -> None:
    with refused(route, NotFound, task_id="t"):
        route.db.cancel("t", "not needed")
    lease = held(route)
    assert not route.db.task("t").cancel_requested
    lease.complete("ran")
    with refused(route, Conflict, state="done"):
        route.other.cancel("t", "not needed")
    assert route.db.result("t") == "ran"


def test_done_first_then_the_cancel_comes_too_late(route: Route) -> None:
    held(route).complete("done")
    with refused(route, Conflict, state="done"):
        route.other.cancel("t")
    assert route.db.result("t") == "done"


def test_cancel_first_then_the_completion_comes_too_late(route: Route) -> None:
    lease = held(route)
    route.other.cancel("t")
    with lost(route, LostReason.CANCELLED):
        lease.complete("done")
    assert route.db.task("t").result is None
    lease.release()
    assert route.db.task("t").state is State.CANCELLED


def test_of_a_cancel_and_a_completion_at_the_same_moment_the_first_commit_wins(route: Route) -> None:
    for n in range(10):
        name = f"t{n}"
        lease = held(route, name)
        start = threading.Barrier(2)
        completion = in_background(partial(refusal_of, partial(lease.complete, "done"), start))
        cancel = in_background(partial(refusal_of, partial(route.other.cancel, name), start))
        refusals = [refusal for refusal in (completion(), cancel()) if refusal is not None]
        assert len(refusals) == 1, f"exactly one of the two is refused, not {refusals}"
        task = route.db.task(name)
        if isinstance(refusals[0], LeaseLost):
            assert refusals[0].reason is LostReason.CANCELLED
            assert (task.state, task.cancel_requested, task.result) == (State.LEASED, True, None)
            lease.release()
        else:
            assert isinstance(refusals[0], Conflict)
            assert (task.state, task.result) == (State.DONE, "done")


def refusal_of(call: Callable[[], object], start: threading.Barrier) -> Error | None:
    """What a call was refused with, once the other is ready to go too."""
    start.wait()
    try:
        call()
    except Error as refusal:
        return refusal
    return None


def test_a_cancelled_task_can_be_taken_again_only_after_a_requeue(route: Route) -> None:
    ready(route)
    route.db.cancel("t")
    with refused(route, Conflict, state="cancelled"):
        route.db.claim(task_id="t")
    route.db.requeue("t")
    assert taken(route).task_id == "t"
