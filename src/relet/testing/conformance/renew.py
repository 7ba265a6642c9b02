"""renew: the end is set to a ttl from now; never added to, never moved back, never beyond max_hold."""

from __future__ import annotations

import pytest

from relet.core.errors import LeaseLost, NotFound
from relet.core.model import LostReason, State
from relet.testing.conformance.evidence import changed, lost, lost_by_lapse, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import TTL_S, causes, expire, held, left_ms, ready, taken

RENEWED = {"expires_ms", "beat_ms", "beat_wall_ms"}


def test_a_renewal_sets_the_end_to_a_ttl_from_now(route: Route) -> None:
    lease = held(route)
    route.clock.advance(25)
    assert lease.renew() == TTL_S
    assert left_ms(route) == TTL_S * 1_000


@pytest.mark.case("EC-09")
def test_renewing_often_adds_nothing_up(route: Route) -> None:
    lease = held(route, ttl=30)
    for _ in range(10):
        route.clock.advance("0.1s")
        assert lease.renew() == 30
    assert left_ms(route) == 30_000


def test_a_renewal_moves_the_heartbeat_and_nothing_else(route: Route) -> None:
    lease = held(route)
    held(route, "u")
    before = route.rows()
    route.clock.advance(25)
    lease.renew()
    after = route.rows()
    (row,) = changed(before["leases"], after["leases"])
    (old,) = (row_before for row_before in before["leases"] if row_before["token"] == lease.token)
    assert {column for column in row if row[column] != old[column]} == RENEWED
    assert {table: after[table] for table in after if table != "leases"} == {
        table: before[table] for table in before if table != "leases"
    }
    task = route.db.task("t")
    assert task.last_heartbeat is not None
    assert task.last_heartbeat.timestamp() * 1_000 == route.clock.wall_ms()


def test_a_renewal_never_moves_the_end_back(route: Route) -> None:
    lease = held(route, ttl=60)
    route.clock.advance(10)
    assert lease.renew(ttl=5) == 50
    assert left_ms(route) == 50_000


def test_a_renewal_with_a_ttl_of_its_own_holds_for_that_beat(route: Route) -> None:
    lease = held(route, ttl=60)
    assert lease.renew(ttl="10m") == 600
    route.clock.advance(590)
    assert lease.renew() == 60


def test_a_lease_can_be_renewed_again_and_again(route: Route) -> None:
    lease = held(route)
    for _ in range(20):
        route.clock.advance("59999ms")
        assert lease.renew() == TTL_S
    assert route.db.task("t").attempt == 1
    assert causes(route) == ["submitted", "claimed"]


@pytest.mark.parametrize("late", [0, 1])
def test_an_extended_lease_is_refused_from_its_new_expiry_on(route: Route, late: int) -> None:
    lease = held(route)
    route.clock.advance(40)
    lease.renew()
    route.clock.advance(f"{TTL_S * 1_000 + late}ms")
    with lost_by_lapse(route, lease.token):
        lease.renew()


def test_a_step_of_the_wall_clock_neither_shortens_nor_prolongs(route: Route) -> None:
    lease = held(route)
    for seconds in (86_400, -7 * 86_400):
        route.clock.step(seconds)
        assert left_ms(route) == TTL_S * 1_000
    route.clock.advance("59999ms")
    assert lease.renew() == TTL_S


# -- max_hold --------------------------------------------------------------------------------------------------------


def test_a_lease_is_granted_for_its_longest_hold_at_most(route: Route) -> None:
    lease = held(route, ttl=60, max_hold=20)
    assert lease.expires_in == 20
    assert left_ms(route) == 20_000


@pytest.mark.case("EC-09")
def test_a_renewal_is_cut_to_the_longest_hold_and_the_next_one_refused_as_capped(route: Route) -> None:
    lease = held(route, ttl="30m", max_hold="12h")
    for _ in range(27):
        route.clock.advance("25m")
        assert lease.renew() == 1_800
    route.clock.advance("25m")
    assert lease.renew() == 1_200, "twenty minutes are left of twelve hours"
    route.clock.advance("1m")
    with lost(route, LostReason.CAPPED, token=lease.token, current_token=lease.token, left_ms=1_140_000):
        lease.renew()


def test_a_capped_lease_is_held_to_its_deadline(route: Route) -> None:
    lease = held(route, ttl=60, max_hold=60)
    with lost(route, LostReason.CAPPED, left_ms=60_000):
        lease.renew()
    route.clock.advance("59999ms")
    assert route.other.claim("reports") is None
    lease.save("still mine")
    lease.complete("in time")
    assert route.db.task("t").state is State.DONE


def test_a_capped_lease_is_over_at_its_deadline_and_its_taker_learns_why(route: Route) -> None:
    lease = held(route, ttl=60, max_hold=60)
    expire(route, lease)
    with lost_by_lapse(route, lease.token, LostReason.CAPPED):
        lease.renew()
    second = taken(route)
    assert second.took_over is not None
    assert second.took_over.reason is LostReason.CAPPED


def test_a_capped_renewal_is_counted_among_the_refused_writes(route: Route) -> None:
    lease = held(route, ttl=60, max_hold=60)
    with lost(route, LostReason.CAPPED):
        lease.renew()
    (rejection,) = route.db.rejections("t")
    assert (rejection.verb, rejection.reason, rejection.late_ms) == ("renew", LostReason.CAPPED, None)


# -- many at once ----------------------------------------------------------------------------------------------------


def test_many_are_answered_in_their_order_and_one_refusal_leaves_the_others_alone(route: Route) -> None:
    names = ["a", "b", "c", "d", "e"]
    leases = [held(route, name) for name in names]
    leases[1].complete()
    leases[3].release(delay=600)
    leases.insert(2, held(route, "short", ttl=5))
    route.clock.advance(20)
    answers = route.db.renew_many(leases)
    reasons = [answer.reason if isinstance(answer, LeaseLost) else answer for answer in answers]
    assert reasons == [60, "closed", "expired", 60, "released", 60]
    assert [left_ms(route, name) for name in ("a", "c", "e")] == [60_000] * 3
    assert route.db.task("short").losses == 1


def test_nothing_to_renew_is_an_empty_answer(route: Route) -> None:
    with unchanged(route):
        assert route.db.renew_many([]) == []


def test_one_lease_twice_is_renewed_once_and_answered_twice(route: Route) -> None:
    lease = held(route)
    route.clock.advance(20)
    assert route.db.renew_many([lease, lease]) == [60, 60]
    assert left_ms(route) == 60_000


def test_an_expired_lease_twice_is_one_loss(route: Route) -> None:
    lease = held(route)
    expire(route, lease)
    answers = route.db.renew_many([lease, lease])
    assert [answer.reason for answer in answers if isinstance(answer, LeaseLost)] == ["expired", "expired"]
    assert (route.db.task("t").losses, causes(route).count("lapsed")) == (1, 1)


def test_a_lease_of_another_tenant_is_a_stranger_among_many(route: Route) -> None:
    mine = held(route)
    route.stranger.submit("reports", id="theirs")
    theirs = route.stranger.claim("reports")
    assert theirs is not None
    route.clock.advance(20)
    answers = route.stranger.renew_many([route.stranger.lease(theirs.handle)])
    assert answers == [60]
    with pytest.raises(NotFound):
        route.stranger.lease(mine.handle)


def test_leases_of_different_ttls_keep_their_own(route: Route) -> None:
    ready(route, "a", ttl=10)
    ready(route, "b", ttl=20)
    ready(route, "c", ttl=30, max_hold=35)
    leases = route.db.claim_many("reports", 3)
    route.clock.advance(9)
    assert route.db.renew_many(leases) == [10, 20, 26]
