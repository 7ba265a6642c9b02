"""Repeating is safe: a request id stands for its answer; a verb that ended a lease is answered alike again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relet.client.blocking_lease import Lease
from relet.core.errors import Conflict
from relet.core.model import LostReason, State
from relet.testing.conformance.evidence import lost, lost_by_lapse, only_lapsed, refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, causes, expire, ready, taken


def asked(route: Route, request_id: str = "r", **options: Any) -> Lease:
    """The lease of a claim with a request id of the caller's."""
    return taken(route, request_id=request_id, **{"holder": "A", **options})


@pytest.mark.case("HT-01")
def test_a_repeated_claim_gets_the_same_lease_and_takes_nothing_more(route: Route) -> None:
    ready(route)
    ready(route, "u")
    first = asked(route)
    with unchanged(route):
        again = asked(route)
    assert (again.task_id, again.token, again.handle, again.input) == ("t", first.token, first.handle, first.input)
    assert route.db.task("u").state is State.READY


def test_a_repeated_claim_is_answered_with_the_time_that_is_left_now(route: Route) -> None:
    ready(route)
    first = asked(route)
    route.clock.advance(20)
    assert asked(route).expires_in == 40
    first.renew()
    route.clock.advance(50)
    with unchanged(route):
        assert asked(route).expires_in == 10
    route.clock.advance("9999ms")
    assert asked(route).expires_in == 0.001


def test_whoever_repeats_holds_the_lease(route: Route) -> None:
    ready(route)
    asked(route)
    asked(route).complete("once")
    assert route.db.result("t") == "once"


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda lease: lease.complete(1), LostReason.CLOSED),
        (lambda lease: lease.fail("no", delay=0), LostReason.CLOSED),
        (lambda lease: lease.release(), LostReason.RELEASED),
    ],
    ids=["complete", "fail", "release"],
)
def test_a_repeated_claim_whose_lease_has_ended_is_lost_and_never_a_new_grant(
    route: Route, end: Callable[[Lease], object], reason: LostReason
) -> None:
    ready(route)
    ready(route, "u")
    first = asked(route)
    end(first)
    with lost(route, reason, token=first.token):
        asked(route)


def test_a_repeated_claim_whose_lease_expired_writes_the_lapse_down(route: Route) -> None:
    ready(route)
    first = asked(route)
    expire(route, first)
    with lost_by_lapse(route, first.token):
        asked(route)
    with lost(route, LostReason.EXPIRED):
        asked(route)
    assert taken(route, holder="A").token > first.token


def test_a_repeated_claim_of_a_task_that_has_passed_on_is_superseded(route: Route) -> None:
    ready(route)
    first = asked(route)
    expire(route, first)
    second = taken(route, holder="A")
    with lost(route, LostReason.SUPERSEDED, current_token=second.token):
        asked(route)


def test_a_repeated_claim_of_a_cancelled_task_is_lost_as_cancelled(route: Route) -> None:
    ready(route)
    asked(route)
    route.db.cancel("t")
    with lost(route, LostReason.CANCELLED):
        asked(route)


@pytest.mark.parametrize(
    "other",
    [
        {"ttl": 30},
        {"kinds": [QUEUE]},
        {"kinds": ["*"]},
        {"queue": "elsewhere"},
        {"queue": [QUEUE, "elsewhere"]},
        {"task_id": "t", "queue": None},
    ],
    ids=str,
)
def test_the_same_request_id_with_other_arguments_is_a_conflict(route: Route, other: dict[str, Any]) -> None:
    ready(route)
    asked(route)
    arguments: dict[str, Any] = {"queue": QUEUE, "holder": "A", **other}
    with refused(route, Conflict, field="request_id"):
        route.db.claim(request_id="r", **arguments)


def test_another_process_may_repeat_a_claim_under_a_name_of_its_own(route: Route) -> None:
    ready(route)
    first = asked(route, holder="A")
    with unchanged(route):
        again = asked(route, by=route.other, holder="B")
    assert (again.token, again.holder) == (first.token, "A")


def test_a_claim_of_many_is_another_request_than_a_claim_of_one(route: Route) -> None:
    ready(route)
    asked(route)
    with refused(route, Conflict, field="request_id"):
        route.db.claim_many(QUEUE, 2, holder="A", request_id="r")


def test_an_empty_answer_is_not_remembered(route: Route) -> None:
    for _ in range(2):
        with unchanged(route):
            assert route.db.claim(QUEUE, holder="A", request_id="r") is None
    ready(route)
    lease = asked(route)
    with unchanged(route):
        assert asked(route).token == lease.token


def test_claims_without_a_request_id_of_the_callers_are_requests_of_their_own(route: Route) -> None:
    ready(route)
    ready(route, "u")
    assert [taken(route, holder="A").task_id for _ in range(2)] == ["t", "u"]


def test_a_repeated_claim_of_many_gets_all_of_them_again(route: Route) -> None:
    route.db.submit_many(QUEUE, range(5))
    first = route.db.claim_many(QUEUE, 3, holder="A", request_id="r")
    with unchanged(route):
        again = route.db.claim_many(QUEUE, 3, holder="A", request_id="r")
    assert [lease.token for lease in again] == [lease.token for lease in first]


def test_a_repeated_claim_of_many_gets_those_that_still_live(route: Route) -> None:
    route.db.submit_many(QUEUE, range(5))
    first = route.db.claim_many(QUEUE, 3, holder="A", request_id="r")
    first[1].complete()
    again = route.db.claim_many(QUEUE, 3, holder="A", request_id="r")
    assert [lease.token for lease in again] == [first[0].token, first[2].token]
    for lease in again:
        lease.complete()
    with lost(route, LostReason.CLOSED):
        route.db.claim_many(QUEUE, 3, holder="A", request_id="r")


def test_a_repeated_claim_of_a_task_by_its_id_gets_the_same_lease(route: Route) -> None:
    ready(route)
    first = route.db.claim(task_id="t", holder="A", request_id="r")
    again = route.db.claim(task_id="t", holder="A", request_id="r")
    assert first is not None and again is not None
    assert again.token == first.token


def test_a_completion_that_claims_the_next_is_repeated_as_a_whole(route: Route) -> None:
    ready(route, "a")
    ready(route, "b")
    ready(route, "c")
    lease = taken(route, holder="A")
    first = lease.complete("done", claim_next=True, request_id="next")
    with unchanged(route):
        again = lease.complete("done", claim_next=True, request_id="next")
    assert first is not None and again is not None
    assert (again.task_id, again.token) == ("b", first.token)
    assert route.db.task("c").state is State.READY


def test_a_completion_whose_next_lease_has_ended_stands_and_says_so(route: Route) -> None:
    ready(route, "a")
    ready(route, "b")
    lease = taken(route, holder="A")
    following = lease.complete("done", claim_next=True, request_id="next")
    assert following is not None
    following.release()
    with lost(route, LostReason.RELEASED, token=following.token):
        lease.complete("done", claim_next=True, request_id="next")
    assert route.db.result("a") == "done"


def test_a_completion_with_a_request_id_of_something_else_changes_nothing(route: Route) -> None:
    ready(route, "a")
    ready(route, "b")
    lease = asked(route)
    with refused(route, Conflict, field="request_id"):
        lease.complete("done", claim_next=True, request_id="r")
    assert lease.complete("done", claim_next=True, request_id="next") is not None
    with refused(route, Conflict, field="request_id"):
        lease.complete("other", claim_next=True, request_id="next")
    assert route.db.result("a") == "done"


# -- the verb that ended a lease -------------------------------------------------------------------------------------

ENDS: dict[str, Callable[[Lease], Any]] = {
    "complete": lambda lease: lease.complete({"pages": 3}),
    "fail": lambda lease: lease.fail("no", delay=0, code="E"),
    "fail for good": lambda lease: lease.fail("no", retry=False),
    "release": lambda lease: lease.release(delay=0),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_verb_that_ended_a_lease_is_answered_alike_again(route: Route, end: str) -> None:
    ready(route)
    lease = taken(route)
    answer = ENDS[end](lease)
    with unchanged(route):
        assert ENDS[end](lease) == answer
        route.clock.advance("3d")
        assert ENDS[end](route.other.lease(lease.handle)) == answer
    assert len(causes(route)) == 3


@pytest.mark.parametrize("end", ["fail", "fail for good", "release"])
def test_it_is_answered_alike_when_the_task_has_another_holder_too(route: Route, end: str) -> None:
    ready(route)
    lease = taken(route)
    answer = ENDS[end](lease)
    if end == "fail for good":
        route.db.requeue("t")
    second = taken(route, holder="B")
    with unchanged(route):
        assert ENDS[end](lease) == answer
    assert second.renew() == 60


@pytest.mark.parametrize("other", ENDS)
@pytest.mark.parametrize("end", ENDS)
def test_another_verb_than_the_one_that_ended_it_is_lost_and_other_content_a_conflict(
    route: Route, end: str, other: str
) -> None:
    ready(route)
    lease = taken(route)
    ENDS[end](lease)
    if end == other:
        return
    if end.split(maxsplit=1)[0] == other.split(maxsplit=1)[0]:
        with refused(route, Conflict, token=lease.token):
            ENDS[other](lease)
    else:
        reason = LostReason.RELEASED if end == "release" else LostReason.CLOSED
        with lost(route, reason):
            ENDS[other](lease)


def test_a_repeat_after_the_expiry_is_still_a_repeat(route: Route) -> None:
    ready(route)
    lease = taken(route)
    lease.complete(1)
    expire(route, lease)
    with unchanged(route):
        lease.complete(1)


def test_a_first_try_after_the_expiry_is_no_repeat(route: Route) -> None:
    ready(route)
    lease = taken(route)
    expire(route, lease)
    before = route.rows()
    assert route.other.sweep() == 1
    only_lapsed(before, route.rows(), lease.token)
    for _ in range(2):
        with lost(route, LostReason.EXPIRED):
            lease.complete(1)
