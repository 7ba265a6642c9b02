"""Shares: fair turns between the keys of one queue."""

from __future__ import annotations

from relet.testing.conformance.evidence import unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, expire, ready, taken


def of(route: Route, share: str | None, n: int) -> None:
    """So many tasks of a share, ready."""
    route.db.submit_many(QUEUE, [None] * n, ids=[f"{share}-{k}" for k in range(n)], share=share)


def next_ones(route: Route, n: int) -> list[str]:
    """The tasks that one claim after the other takes, in turn by either client."""
    return [taken(route, by=(route.db, route.other)[k % 2]).task_id for k in range(n)]


def test_shares_take_turns_whoever_claims(route: Route) -> None:
    of(route, "a", 30)
    of(route, "b", 1)
    of(route, "c", 2)
    assert next_ones(route, 6) == ["a-0", "b-0", "c-0", "a-1", "c-1", "a-2"]


def test_a_claim_of_many_is_spread_over_the_shares(route: Route) -> None:
    of(route, "a", 30)
    of(route, "b", 2)
    leases = route.db.claim_many(QUEUE, 5)
    assert [lease.task_id for lease in leases] == ["a-0", "b-0", "a-1", "b-1", "a-2"]


def test_within_a_share_priority_decides(route: Route) -> None:
    of(route, "a", 2)
    ready(route, "urgent", share="a", priority=1)
    of(route, "b", 1)
    assert next_ones(route, 3) == ["urgent", "b-0", "a-0"]


def test_tasks_without_a_share_take_one_turn_together(route: Route) -> None:
    of(route, None, 2)
    of(route, "a", 2)
    ready(route, "later")
    assert next_ones(route, 5) == ["None-0", "a-0", "None-1", "a-1", "later"]
    assert [route.db.task(one).share for one in ("None-0", "later", "a-0")] == [None, None, "a"]


def test_a_share_is_no_content_of_a_task(route: Route) -> None:
    ready(route, share="a")
    again = ready(route, share="b")
    assert (again.created, again.share) == (False, "a")


def test_a_task_that_is_taken_over_waits_for_its_shares_turn(route: Route) -> None:
    of(route, "a", 2)
    of(route, "b", 1)
    expire(route, taken(route, ttl=1))
    assert next_ones(route, 3) == ["b-0", "a-0", "a-1"]


def test_a_completion_that_claims_next_takes_the_next_share(route: Route) -> None:
    of(route, "a", 2)
    of(route, "b", 1)
    following = taken(route).complete(claim_next=True)
    assert following is not None
    assert following.task_id == "b-0"


def test_shares_of_a_paused_queue_wait(route: Route) -> None:
    of(route, "a", 1)
    route.db.queue(QUEUE, paused=True)
    with unchanged(route):
        assert route.db.claim(QUEUE) is None
    route.db.queue(QUEUE, paused=False)
    assert next_ones(route, 1) == ["a-0"]


def test_tenants_have_turns_of_their_own(route: Route) -> None:
    of(route, "a", 2)
    of(route, "b", 1)
    route.stranger.submit_many(QUEUE, [None] * 2, ids=["a-0", "a-1"], share="a")
    assert next_ones(route, 1) == ["a-0"]
    assert [taken(route, by=route.stranger).task_id for _ in range(2)] == ["a-0", "a-1"]
    assert next_ones(route, 1) == ["b-0"]
