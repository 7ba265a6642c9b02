"""advise: settings from what was measured, bounded, and honest where little is."""

from __future__ import annotations

import pytest

from relet.core import limits
from relet.core.errors import LeaseLost
from relet.core.model import State
from relet.testing.conformance.evidence import unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, STATES, TTL_S, brought_to, expire, held, ready, taken

MANY = limits.ADVICE_LEASES_LEAST


def worked(route: Route, n: int, seconds: int, queue: str = QUEUE) -> None:
    """So many leases that took so long, with heartbeats in time."""
    route.db.submit_many(queue, range(n))
    leases = route.db.claim_many(queue, n, holder="A")
    beat_s = TTL_S // 3
    for _ in range(seconds // beat_s):
        route.clock.advance(beat_s)
        route.db.renew_many(leases)
    route.clock.advance(seconds % beat_s)
    route.db.complete_many([(lease, None) for lease in leases])


def test_a_store_without_leases_has_no_advice(route: Route) -> None:
    ready(route)
    assert route.db.advise() == []
    (advice,) = route.db.advise(QUEUE)
    assert (advice.queue, advice.leases, advice.paste) == (QUEUE, 0, [])


@pytest.mark.parametrize("state", STATES)
def test_advice_never_writes(route: Route, state: State) -> None:
    brought_to(route, state)
    with unchanged(route):
        route.db.advise()


def test_durations_are_those_of_the_leases_of_the_queue(route: Route) -> None:
    worked(route, MANY, 90)
    worked(route, 1, 5, queue="other")
    here, other = sorted(route.db.advise(), key=lambda one: -one.leases)
    assert (here.queue, here.leases, here.finished, here.ttl_ms) == (QUEUE, MANY, MANY, TTL_S * 1_000)
    assert here.took is not None
    assert (here.took.p50_ms, here.took.longest_ms, here.late_renewals) == (90_000, 90_000, 0)
    assert here.advised_ttl_ms == TTL_S * 1_000
    assert (other.queue, other.leases, other.advised_ttl_ms) == ("other", 1, None)
    assert route.db.advise("other") == [other]


def test_a_renewal_that_came_late_lengthens_the_ttl(route: Route) -> None:
    worked(route, MANY, 90)
    lease = held(route, "late")
    route.clock.advance(TTL_S - 5)
    route.db.renew_many([lease])
    lease.complete()
    (advice,) = route.db.advise(QUEUE)
    assert (advice.late_renewals, advice.least_left_ms) == (1, 5_000)
    assert advice.advised_ttl_ms == 120_000
    assert 'ttl="2m"' in advice.paste[0]


def test_an_ending_without_the_heartbeat_that_was_due_counts_as_late_too(route: Route) -> None:
    lease = held(route)
    route.clock.advance(TTL_S - 5)
    route.db.complete_many([(lease, None)])
    (advice,) = route.db.advise()
    assert (advice.late_renewals, advice.least_left_ms) == (1, 5_000)


def test_the_end_of_a_cap_is_no_late_heartbeat(route: Route) -> None:
    lease = held(route, max_hold=TTL_S)
    route.clock.advance(TTL_S - 5)
    route.db.complete_many([(lease, None)])
    (advice,) = route.db.advise()
    assert (advice.late_renewals, advice.max_hold_ms) == (0, TTL_S * 1_000)


def test_a_holder_that_came_back_too_late_is_told_from_one_that_died(route: Route) -> None:
    worked(route, MANY, 90)
    late, died = held(route, "late"), held(route, "died", holder="B")
    expire(route, died, late=10)
    for _ in range(2):
        (refused,) = route.db.complete_many([(late, None)])
        assert isinstance(refused, LeaseLost)
    taken(route)
    (advice,) = route.db.advise(QUEUE)
    assert (advice.lapsed, advice.takeovers, advice.late_holders) == (2, 1, 1)
    assert advice.advised_ttl_ms == 180_000


def test_a_holder_that_was_cut_off_by_a_cap_was_not_late(route: Route) -> None:
    lease = held(route, max_hold=TTL_S)
    expire(route, lease, late=10)
    route.db.complete_many([(lease, None)])
    (advice,) = route.db.advise()
    assert (advice.lapsed, advice.died, advice.late_holders) == (1, 0, 0)


def test_a_lease_that_is_held_and_renewed_tells_how_long_and_one_given_back_does_not(route: Route) -> None:
    worked(route, limits.ADVICE_HOLD_LEAST, 30)
    assert route.db.advise(QUEUE)[0].advised_max_hold_ms == 2 * TTL_S * 1_000
    lease = held(route, "long")
    for _ in range(7):
        route.clock.advance(TTL_S // 3)
        route.db.renew_many([lease])
    assert route.db.advise(QUEUE)[0].advised_max_hold_ms is None
    lease.release()
    (advice,) = route.db.advise(QUEUE)
    assert (advice.finished, advice.given_back) == (limits.ADVICE_HOLD_LEAST, 1)
    assert advice.advised_max_hold_ms == 2 * TTL_S * 1_000


def test_settings_that_are_followed_are_advised_no_more(route: Route) -> None:
    worked(route, limits.ADVICE_HOLD_LEAST, 30)
    (advice,) = route.db.advise(QUEUE)
    assert advice.advised_max_hold_ms == 2 * TTL_S * 1_000
    assert 'db.queue("reports", max_hold="2m")' in advice.paste
    route.db.queue(QUEUE, max_hold="2m")
    worked(route, limits.ADVICE_HOLD_LEAST, 30)
    (advice,) = route.db.advise(QUEUE)
    assert (advice.max_hold_ms, advice.paste) == (120_000, [])
