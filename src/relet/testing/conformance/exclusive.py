"""exclusive: a key is busy exactly while a lease with it is live."""

from __future__ import annotations

from relet.core.model import State
from relet.testing.conformance.evidence import unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, TTL_S, expire, held, ready, taken


def test_of_two_tasks_with_one_key_one_is_held_at_a_time(route: Route) -> None:
    first = held(route, "a", exclusive="site")
    ready(route, "b", exclusive="site")
    with unchanged(route):
        assert route.db.claim(QUEUE) is None
    first.complete()
    assert taken(route).task_id == "b"


def test_one_claim_of_many_grants_one_of_a_key(route: Route) -> None:
    for name in ("a", "b", "c"):
        ready(route, name, exclusive="site")
    ready(route, "free")
    assert [lease.task_id for lease in route.db.claim_many(QUEUE, 10)] == ["a", "free"]


def test_a_key_is_shared_by_all_queues(route: Route) -> None:
    held(route, "a", queue="elsewhere", exclusive="site")
    ready(route, "b", exclusive="site")
    assert route.db.claim(QUEUE) is None


def test_another_key_or_none_is_not_in_the_way(route: Route) -> None:
    held(route, "a", exclusive="site")
    ready(route, "b", exclusive="other site")
    ready(route, "c")
    assert [lease.task_id for lease in route.db.claim_many(QUEUE, 10)] == ["b", "c"]


def test_a_crowd_that_waits_for_a_key_hides_no_free_task(route: Route) -> None:
    held(route, "a", exclusive="site")
    route.db.submit_many(QUEUE, range(200), exclusive="site", priority=5)
    ready(route, "free")
    assert taken(route).task_id == "free"


def test_a_key_is_free_at_the_instant_its_lease_expires_and_not_before(route: Route) -> None:
    held(route, "a", exclusive="site")
    ready(route, "b", exclusive="site", priority=9)
    route.clock.advance(f"{TTL_S * 1_000 - 1}ms")
    assert route.db.claim(QUEUE) is None
    route.clock.advance("1ms")
    assert taken(route).task_id == "b"


def test_a_key_stays_busy_for_as_long_as_its_lease_is_renewed(route: Route) -> None:
    first = held(route, "a", exclusive="site")
    ready(route, "b", exclusive="site", priority=9)
    route.clock.advance(40)
    first.renew()
    route.clock.advance("59999ms")
    assert route.db.claim(QUEUE) is None
    route.clock.advance("1ms")
    assert taken(route).task_id == "b"


def test_the_claim_that_meets_an_expired_blocker_closes_it(route: Route) -> None:
    blocker = held(route, "a", exclusive="site")
    ready(route, "b", exclusive="site", priority=9)
    expire(route, blocker)
    lease = taken(route)
    assert lease.task_id == "b"
    task = route.db.task("a")
    assert (task.state, task.losses, task.live) == (State.READY, 1, False)
    (row,) = (row for row in route.rows()["leases"] if row["token"] == blocker.token)
    assert row["ended"] == "lapsed"


def test_an_expired_blocker_is_closed_even_behind_a_crowd_of_other_lapses(route: Route) -> None:
    route.db.submit_many("crowd", range(80))
    route.db.claim_many("crowd", 80, ttl=30)
    blocker = held(route, "a", exclusive="site")
    ready(route, "b", exclusive="site", priority=9)
    expire(route, blocker)
    assert taken(route).task_id == "b"
    assert route.db.task("a").losses == 1


def test_a_key_is_free_again_however_the_lease_ended(route: Route) -> None:
    held(route, "a", exclusive="site").complete()
    held(route, "b", exclusive="site").fail("no", retry=False)
    held(route, "c", exclusive="site").release(delay=3_600)
    held(route, "d", exclusive="site").fail("later", delay=3_600)
    assert held(route, "last", exclusive="site").task_id == "last"


def test_a_holder_that_is_to_give_way_still_keeps_the_key(route: Route) -> None:
    first = held(route, "a", exclusive="site")
    ready(route, "b", exclusive="site")
    route.db.cancel("a")
    assert route.db.claim(QUEUE) is None
    first.release()
    assert taken(route).task_id == "b"
