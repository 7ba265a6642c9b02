"""Bounds: how many leases of a queue may be live at once, and how many may start in a time."""

from __future__ import annotations

from relet.client.blocking_lease import Lease
from relet.core.rules.room import HeldBack
from relet.testing.conformance.evidence import unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, expire, ready, taken


def fill(route: Route, n: int = 9, share: str | None = None) -> None:
    """So many ready tasks."""
    route.db.submit_many(QUEUE, list(range(n)), ids=[f"{share or 't'}-{k}" for k in range(n)], share=share)


def leases(route: Route, n: int) -> list[Lease]:
    """A claim of many, by the other client."""
    return route.other.claim_many(QUEUE, n)


def test_a_limit_holds_for_all_claimers_together(route: Route) -> None:
    fill(route)
    route.db.queue(QUEUE, concurrency=3)
    held = [taken(route), *leases(route, 9)]
    assert len(held) == 3
    with unchanged(route):
        assert route.db.claim(QUEUE) is None
        assert route.db.claim(task_id="t-8") is None
        assert leases(route, 9) == []
    held[0].complete()
    held[1].release(delay=60)
    assert len(leases(route, 9)) == 2


def test_a_completion_that_claims_next_stays_within_the_limit(route: Route) -> None:
    fill(route)
    route.db.queue(QUEUE, concurrency=1)
    following = taken(route).complete(claim_next=True)
    assert following is not None
    assert leases(route, 9) == []


def test_an_expired_lease_frees_its_place_in_the_very_claim(route: Route) -> None:
    fill(route, 2)
    route.db.queue(QUEUE, concurrency=1)
    lease = taken(route)
    route.clock.advance(lease.ttl - 0.001)
    assert leases(route, 1) == []
    route.clock.advance(0.001)
    assert len(leases(route, 9)) == 1
    assert route.db.task(lease.task_id).losses == 1


def test_each_share_has_its_own_limit(route: Route) -> None:
    fill(route, share="a")
    fill(route, 1, share="b")
    route.db.queue(QUEUE, share_concurrency=2)
    held = leases(route, 9)
    assert [lease.task_id for lease in held] == ["a-0", "b-0", "a-1"]
    assert route.db.claim(task_id="a-5") is None
    (state,) = route.db.queues(QUEUE, "a")
    assert state.held_back is HeldBack.SHARE_CONCURRENCY
    held[0].complete()
    assert [lease.task_id for lease in leases(route, 9)] == ["a-2"]


def test_whoever_looks_is_told_when_every_share_with_ready_tasks_is_at_its_limit(route: Route) -> None:
    fill(route, 2, share="a")
    fill(route, 2, share="b")
    route.db.queue(QUEUE, share_concurrency=1)
    assert route.db.queues(QUEUE)[0].held_back is None
    held = leases(route, 9)
    assert [lease.task_id for lease in held] == ["a-0", "b-0"]
    assert route.db.queues(QUEUE)[0].held_back is HeldBack.SHARE_CONCURRENCY
    held[0].complete()
    assert route.db.queues(QUEUE)[0].held_back is None, "one has room again"
    assert [lease.task_id for lease in leases(route, 9)] == ["a-1"]
    assert route.db.queues(QUEUE)[0].held_back is HeldBack.SHARE_CONCURRENCY, "the other has not"
    route.clock.advance(held[1].ttl)
    assert route.db.queues(QUEUE)[0].held_back is None, "what has expired frees its place in the next claim"
    route.db.queue(QUEUE, share_concurrency="none")
    assert route.db.queues(QUEUE)[0].held_back is None


def test_a_rate_is_met_in_the_stores_time(route: Route) -> None:
    fill(route, 30)
    route.db.queue(QUEUE, rate="20/m")
    assert len(leases(route, 9)) == 2
    assert route.db.claim(QUEUE) is None
    (state,) = route.db.queues(QUEUE)
    assert (state.held_back, state.rate, state.rate_ms) == (HeldBack.RATE, 20, 60_000)
    assert state.next_ms is not None
    route.clock.advance(state.next_ms / 1_000)
    assert len(leases(route, 9)) == 1
    for _ in range(4):
        route.clock.advance(3)
        assert len(leases(route, 9)) == 1


def test_a_step_of_the_wall_clock_neither_opens_nor_closes_a_rate(route: Route) -> None:
    fill(route, 30)
    route.db.queue(QUEUE, rate="1/m")
    assert len(leases(route, 9)) == 1
    route.clock.step(86_400)
    assert len(leases(route, 9)) == 0
    route.clock.step(-2 * 86_400)
    route.clock.advance(60)
    assert len(leases(route, 9)) == 1


def test_limits_are_kept_until_they_are_lifted(route: Route) -> None:
    fill(route)
    route.db.queue(QUEUE, concurrency=1, share_concurrency=2, rate="1/m")
    row = route.other.queue(QUEUE, ttl=5)
    assert (row.concurrency, row.share_concurrency, row.rate, row.rate_ms) == (1, 2, 1, 60_000)
    row = route.other.queue(QUEUE, concurrency="none", share_concurrency="none", rate="none")
    assert (row.concurrency, row.share_concurrency, row.rate, row.rate_ms) == (None, None, None, None)
    assert len(leases(route, 9)) == 9


def test_a_limit_below_what_is_held_ends_nothing(route: Route) -> None:
    fill(route)
    held = leases(route, 4)
    route.db.queue(QUEUE, concurrency=2)
    assert [lease.renew() for lease in held] == [60] * 4
    held[0].complete()
    held[1].complete()
    assert leases(route, 9) == []
    held[2].complete()
    assert len(leases(route, 9)) == 1


def test_queues_tell_what_holds_their_tasks_back(route: Route) -> None:
    ready(route)
    route.db.queue("idle", paused=True)
    route.stranger.submit(QUEUE)
    lease = taken(route)
    route.db.queue(QUEUE, concurrency=1)
    told = {one.name: (one.held_back, one.live, one.places) for one in route.other.queues()}
    assert told == {"idle": (HeldBack.PAUSED, 0, 0), QUEUE: (HeldBack.CONCURRENCY, 1, 1)}
    expire(route, lease)
    (state,) = route.db.queues(QUEUE)
    assert (state.held_back, state.live, state.places) == (None, 0, 1)
    assert route.db.queues("never seen")[0].held_back is None
