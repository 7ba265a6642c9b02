"""complete: one result, under the current token, before expiry; done is final."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from relet.client.blocking_lease import Lease
from relet.core.errors import Conflict, LeaseLost, NotFound
from relet.core.model import LostReason, State
from relet.core.rules.finish import Ended
from relet.testing.conformance.evidence import lost, lost_by_lapse, refused, unchanged
from relet.testing.conformance.guard import answered, forged, requests
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, TTL_S, causes, expire, held, in_background, ready, taken


@pytest.mark.parametrize("result", [None, False, 0, 1.5, "", "漢字", [], {"pages": [1, None]}])
def test_a_result_is_kept_and_read_by_everybody(route: Route, result: Any) -> None:
    lease = held(route)
    assert lease.complete(result) is None
    task = route.other.task("t")
    assert (task.state, task.live, task.result, task.token) == (State.DONE, False, result, lease.token)
    assert route.other.result("t") == result
    assert causes(route) == ["submitted", "claimed", "completed"]


@pytest.mark.case("ZC-03")
def test_done_is_final(route: Route) -> None:
    lease = held(route)
    lease.complete("kept")
    with unchanged(route):
        for _ in range(20):
            route.clock.advance(TTL_S * 3 / 20)
            assert route.db.sweep() == 0
            assert route.db.claim(QUEUE) is None
    assert [row["ended"] for row in route.rows()["leases"]] == ["completed"]
    with refused(route, Conflict, state="done"):
        route.db.cancel("t")
    with refused(route, Conflict, state="done"):
        route.db.requeue("t")
    with refused(route, Conflict, state="done"):
        route.db.claim(task_id="t", handle=lease.handle)
    assert route.db.result("t") == "kept"


def test_success_forgets_the_error_of_an_earlier_attempt(route: Route) -> None:
    held(route).fail("no", delay=0, code="E-1")
    assert (route.db.task("t").error, route.db.task("t").code) == ("no", "E-1")
    taken(route).complete(1)
    task = route.db.task("t")
    assert (task.error, task.code, task.reason, task.failures) == (None, None, None, 1)


def test_the_same_result_twice_is_one_completion(route: Route) -> None:
    lease = held(route)
    lease.complete({"a": 1, "b": 2})
    with unchanged(route):
        lease.complete({"b": 2, "a": 1})
        route.clock.advance("3h")
        route.other.lease(lease.handle).complete({"a": 1, "b": 2})
    assert causes(route).count("completed") == 1


def test_another_result_afterwards_is_a_conflict_and_the_first_stands(route: Route) -> None:
    lease = held(route)
    lease.complete("first")
    for other in ("second", None, {"first": 1}):
        with refused(route, Conflict, task_id="t", token=lease.token, verb="completed"):
            lease.complete(other)
    assert route.db.result("t") == "first"


def test_only_one_of_two_holders_in_a_row_completes(route: Route) -> None:
    first = held(route, holder="A")
    expire(route, first)
    second = taken(route, holder="B")
    with lost(route, LostReason.SUPERSEDED, current_token=second.token):
        first.complete("A's")
    second.complete("B's")
    with lost(route, LostReason.SUPERSEDED):
        first.complete("A's")
    assert route.db.result("t") == "B's"


@pytest.mark.case("ZC-06")
def test_a_late_result_is_kept_for_the_next_holder_to_read(route: Route) -> None:
    lease = held(route)
    route.clock.advance(TTL_S + 1)
    with lost_by_lapse(route, lease.token):
        lease.complete({"pages": 3})
    (rejection,) = route.db.rejections("t")
    assert (rejection.verb, rejection.holder, rejection.token) == ("complete", "A", lease.token)
    assert (rejection.reason, rejection.late_ms, rejection.result) == (LostReason.EXPIRED, 1_000, {"pages": 3})
    taken(route)
    assert route.db.rejections("t")[0].result == {"pages": 3}
    assert route.db.task("t").result is None


def test_of_several_late_results_of_a_token_the_newest_is_kept(route: Route) -> None:
    first = held(route)
    expire(route, first)
    second = taken(route)
    for result in ("one", "two"):
        with lost(route, LostReason.SUPERSEDED):
            first.complete(result)
    expire(route, second)
    with lost_by_lapse(route, second.token):
        second.complete("of the second token")
    kept = [(rejection.token, rejection.result) for rejection in route.db.rejections("t")]
    assert kept == [(second.token, "of the second token"), (first.token, "two"), (first.token, None)]


def test_a_result_under_a_handle_that_proves_nothing_is_not_kept(route: Route) -> None:
    lease, neighbour = held(route), held(route, "u")
    expire(route, lease)
    with pytest.raises(NotFound, match="no such lease"):
        answered(route, requests(forged(lease, "guessed secret", neighbour))["complete"])
    assert route.db.rejections() == []


def test_of_a_completion_and_an_expiry_at_the_same_moment_one_decides(route: Route) -> None:
    for n in range(20):
        lease = held(route, f"t{n}")
        route.clock.advance(f"{TTL_S * 1_000 - 1}ms")
        start = threading.Barrier(2)
        completion = in_background(partial(accepted, lease, start))
        start.wait()
        route.clock.advance("1ms")
        swept = route.other.sweep()
        is_accepted = completion()
        task = route.db.task(f"t{n}")
        if is_accepted:
            assert (task.state, task.result, task.losses, swept) == (State.DONE, "done", 0, 0)
        else:
            assert (task.state, task.result, task.losses) == (State.READY, None, 1)
            route.db.cancel(f"t{n}")


def accepted(lease: Lease, start: threading.Barrier) -> bool:
    """Was a completion taken, sent at the same moment as something else."""
    start.wait()
    with suppress(LeaseLost):
        lease.complete("done")
        return True
    return False


# -- complete(claim_next=True) ---------------------------------------------------------------------------------------


def test_the_next_task_of_the_same_queues_comes_with_the_completion(route: Route) -> None:
    ready(route, "a", queue="second")
    ready(route, "b", queue="second")
    first = route.db.claim(["first", "second"], holder="A", ttl=30)
    assert first is not None
    second = first.complete("done", claim_next=True)
    assert second is not None
    assert (second.task_id, second.holder, second.ttl) == ("b", "A", 30)
    assert second.token > first.token
    assert route.db.result("a") == "done"
    assert second.complete(claim_next=True) is None
    assert route.db.task("b").state is State.DONE


def test_the_next_task_is_of_the_kinds_that_were_asked_for(route: Route) -> None:
    for name, kind in (("a", "page"), ("b", "mail"), ("c", "page")):
        ready(route, name, kind=kind)
    first = taken(route, kinds=["page"])
    second = first.complete(claim_next=True)
    assert second is not None
    assert second.task_id == "c"


def test_the_key_of_the_completed_task_is_free_for_the_next(route: Route) -> None:
    first = held(route, "a", exclusive="site")
    ready(route, "b", exclusive="site")
    second = first.complete(claim_next=True)
    assert second is not None
    assert second.task_id == "b"


def test_a_refused_completion_claims_nothing(route: Route) -> None:
    first = held(route)
    expire(route, first)
    second = taken(route, holder="B")
    ready(route, "u")
    with lost(route, LostReason.SUPERSEDED):
        first.complete("late", claim_next=True)
    assert route.db.task("u").state is State.READY
    second.complete("second's")
    with lost(route, LostReason.SUPERSEDED):
        first.complete("late", claim_next=True)


# -- many at once ----------------------------------------------------------------------------------------------------


def test_many_are_answered_in_their_order_and_one_refusal_leaves_the_others_alone(route: Route) -> None:
    leases = [held(route, name) for name in ("a", "b", "c")]
    late = held(route, "late", ttl=5)
    leases[1].complete("first")
    route.clock.advance(20)
    outcomes = route.db.complete_many([(late, 0), (leases[0], 1), (leases[1], 2), (leases[2], 3)])
    assert isinstance(outcomes[0], LeaseLost) and outcomes[0].reason is LostReason.EXPIRED
    assert isinstance(outcomes[1], Ended) and outcomes[1].state is State.DONE
    assert isinstance(outcomes[2], Conflict)
    assert isinstance(outcomes[3], Ended)
    assert [route.db.result(name) for name in ("a", "b", "c")] == [1, "first", 3]
    assert route.db.task("late").state is State.READY
    assert [rejection.result for rejection in route.db.rejections("late")] == [0]


def test_nothing_to_complete_is_an_empty_answer(route: Route) -> None:
    with unchanged(route):
        assert route.db.complete_many([]) == []


def test_one_lease_with_two_results_in_one_call_keeps_the_first(route: Route) -> None:
    lease = held(route)
    outcomes = route.db.complete_many([(lease, "first"), (lease, "second"), (lease, "first")])
    assert isinstance(outcomes[1], Conflict)
    assert outcomes[0] == outcomes[2]
    assert route.db.result("t") == "first"


def test_two_leases_of_one_task_in_one_batch_are_judged_each_for_itself(route: Route) -> None:
    late = held(route)
    expire(route, late)
    lease = taken(route)
    outcomes = route.db.complete_many([(late, "late"), (lease, "in time"), (late, "late")])
    assert [getattr(outcome, "reason", None) for outcome in outcomes] == ["superseded", None, "superseded"]
    assert route.db.result("t") == "in time"


def test_a_key_that_a_completion_frees_is_free_for_what_is_claimed_with_it(route: Route) -> None:
    ready(route, "first", exclusive="key")
    ready(route, "second", exclusive="key")
    following = taken(route).complete(claim_next=True)
    assert following is not None
    assert following.task_id == "second"
    assert route.other.claim(QUEUE) is None
