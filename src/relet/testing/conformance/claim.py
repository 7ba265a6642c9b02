"""claim: one winner, a new and larger token each time, and takeover only once the lease has expired."""

from __future__ import annotations

from functools import partial

import pytest

from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.core.model import LostReason, State
from relet.testing.conformance.evidence import lost, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import (
    QUEUE,
    TTL_S,
    causes,
    expire,
    held,
    in_background,
    left_ms,
    ready,
    taken,
)  # fmt: skip


def test_a_grant_says_what_its_holder_needs(route: Route) -> None:
    ready(route, kind="k", labels={"team": "a"}, ttl=30)
    lease = taken(route, holder="A")
    assert (lease.task_id, lease.holder, lease.queue, lease.kind) == ("t", "A", QUEUE, "k")
    assert (lease.input, lease.labels, lease.attempt) == ({"topic": "t"}, {"team": "a"}, 1)
    assert (lease.ttl, lease.expires_in, lease.took_over) == (30, 30, None)
    assert lease.token > 0
    assert lease.last_heartbeat.timestamp() * 1_000 == route.clock.wall_ms()
    assert (lease.renew_by - lease.last_heartbeat).total_seconds() == 10


def test_a_claimed_task_shows_who_holds_it_and_until_when(route: Route) -> None:
    lease = held(route)
    route.clock.advance(5)
    task = route.other.task("t")
    assert (task.state, task.live, task.holder, task.token) == (State.LEASED, True, "A", lease.token)
    assert left_ms(route) == 55_000
    assert task.renew_by is not None and task.last_heartbeat is not None
    assert (task.renew_by - task.last_heartbeat).total_seconds() == TTL_S / 3
    assert task.claimed_at == task.last_heartbeat


def test_an_empty_queue_grants_nothing_and_changes_nothing(route: Route) -> None:
    ready(route, queue="elsewhere")
    with unchanged(route):
        assert route.db.claim(QUEUE) is None
        assert route.db.claim_many(QUEUE, 3) == []


def test_of_two_claims_one_gets_the_task_and_the_other_nothing(route: Route) -> None:
    ready(route)
    lease = taken(route, holder="A")
    with unchanged(route):
        assert route.other.claim(QUEUE, holder="B") is None
    assert route.db.task("t").token == lease.token


def test_claims_at_the_same_moment_share_out_the_tasks(route: Route) -> None:
    route.db.submit_many(QUEUE, range(12), ids=[f"t{n}" for n in range(12)])
    claims = [in_background(partial(claim_five, client)) for client in (route.db, route.other, route.db)]
    leases = [lease for answer in claims for lease in answer() if lease is not None]
    assert len(leases) == 12
    assert len({lease.task_id for lease in leases}) == len({lease.token for lease in leases}) == 12


def test_the_larger_priority_comes_first_then_the_older_task(route: Route) -> None:
    for name, priority in [("low", -1), ("first", 0), ("second", 0), ("high", 5)]:
        ready(route, name, priority=priority)
    assert [taken(route).task_id for _ in range(4)] == ["high", "first", "second", "low"]


def test_a_delay_that_has_passed_leaves_the_order_by_priority(route: Route) -> None:
    ready(route, "now", priority=0)
    ready(route, "later", priority=1, delay=10)
    assert taken(route).task_id == "now"
    route.clock.advance(10)
    ready(route, "new", priority=0)
    assert taken(route).task_id == "later"


def test_of_many_that_fall_due_together_the_larger_priority_comes_first(route: Route) -> None:
    route.db.submit_many(QUEUE, range(200), delay=10)
    ready(route, "urgent", delay=20, priority=1)
    route.clock.advance(30)
    assert taken(route).task_id == "urgent"


def test_a_list_of_queues_is_looked_through_in_its_order(route: Route) -> None:
    ready(route, "b", queue="second", priority=9)
    ready(route, "a", queue="first")
    claimed = [route.db.claim(["first", "second"]) for _ in range(3)]
    assert [lease and lease.task_id for lease in claimed] == ["a", "b", None]


def test_only_the_wanted_kinds_are_granted(route: Route) -> None:
    ready(route, "mail", kind="mail", priority=9)
    ready(route, "page", kind="page")
    ready(route, "note", kind="note")
    leases = route.db.claim_many(QUEUE, 5, kinds=["page", "note"])
    assert [lease.task_id for lease in leases] == ["page", "note"]
    assert route.db.claim(QUEUE, kinds=["page"]) is None
    assert taken(route).task_id == "mail"


def test_many_unwanted_tasks_hide_no_wanted_one(route: Route) -> None:
    route.db.submit_many(QUEUE, range(150), kind="other")
    ready(route, kind="page")
    assert taken(route, kinds=["page"]).task_id == "t"


def test_many_are_claimed_at_once_each_under_its_own_larger_token(route: Route) -> None:
    route.db.submit_many(QUEUE, range(100), ids=[f"t{n}" for n in range(100)])
    leases = route.db.claim_many(QUEUE, 70)
    assert [lease.task_id for lease in leases] == [f"t{n}" for n in range(70)]
    tokens = [lease.token for lease in leases]
    assert tokens == sorted(set(tokens))
    assert len(route.other.claim_many(QUEUE, 70)) == 30


@pytest.mark.parametrize(("late", "free"), [(-1, False), (0, True), (1, True)])
def test_a_task_is_taken_over_at_the_instant_its_lease_expires_and_not_before(
    route: Route, late: int, free: bool
) -> None:
    first = held(route)
    route.clock.advance(f"{TTL_S * 1_000 + late}ms")
    second = route.other.claim(QUEUE, holder="B")
    assert (second is not None) is free
    if second is not None:
        assert second.token > first.token


def test_a_renewed_lease_is_taken_over_after_its_new_expiry_only(route: Route) -> None:
    lease = held(route)
    route.clock.advance(40)
    lease.renew()
    for _ in range(2):
        route.clock.advance("29999ms")
        with unchanged(route):
            assert route.other.claim(QUEUE, holder="B") is None
    route.clock.advance("2ms")
    assert taken(route, by=route.other, holder="B").token > lease.token


@pytest.mark.case("EC-04")
def test_a_lease_is_judged_by_its_own_ttl_and_not_by_the_claimers(route: Route) -> None:
    ready(route)
    lease = taken(route, holder="A", ttl=300)
    route.clock.advance(20)
    assert route.other.claim(QUEUE, holder="B", ttl=10) is None
    route.clock.advance(280)
    second = taken(route, by=route.other, holder="B", ttl=10)
    assert (second.ttl, second.token > lease.token) == (10, True)


def test_a_step_of_the_wall_clock_takes_no_lease_away_and_revives_none(route: Route) -> None:
    lease = held(route)
    route.clock.step(86_400)
    assert route.db.task("t").live
    assert route.other.claim(QUEUE) is None
    expire(route, lease)
    route.clock.step(-2 * 86_400)
    assert not route.db.task("t").live
    assert taken(route, by=route.other).token > lease.token


def test_a_takeover_says_whom_it_took_the_task_from(route: Route) -> None:
    first = held(route, holder="A")
    expire(route, first)
    second = taken(route, holder="B")
    assert second.took_over is not None
    assert (second.took_over.holder, second.took_over.token) == ("A", first.token)
    assert second.took_over.reason is LostReason.EXPIRED
    assert second.attempt == 2
    assert route.db.task("t").losses == 1
    assert causes(route) == ["submitted", "claimed", "lapsed", "claimed"]


def test_a_release_is_no_takeover(route: Route) -> None:
    held(route).release()
    second = taken(route)
    assert (second.took_over, second.attempt) == (None, 1)


@pytest.mark.case("CR-07")
def test_the_same_holder_gets_another_token_and_its_old_one_is_refused(route: Route) -> None:
    first = held(route, holder="A")
    expire(route, first)
    second = taken(route, holder="A")
    assert second.holder == first.holder
    assert second.token > first.token
    with lost(route, LostReason.SUPERSEDED, token=first.token, current_token=second.token):
        first.save("mine")
    with lost(route, LostReason.SUPERSEDED):
        first.complete("mine")
    second.complete("the second's")
    assert route.db.result("t") == "the second's"


def test_tokens_grow_over_the_whole_store_whatever_ended_the_lease(route: Route) -> None:
    tokens: list[int] = []
    for end in ("release", "fail", "lapse", "requeue", "other task"):
        if not tokens:
            ready(route)
        lease = taken(route)
        tokens.append(lease.token)
        match end:
            case "release":
                lease.release()
            case "fail":
                lease.fail("no", delay=0)
            case "lapse":
                expire(route, lease)
            case "requeue":
                lease.fail("no", retry=False)
                route.db.requeue("t")
            case _:
                tokens += [held(route, "u").token, held(route, "v", queue="elsewhere").token]
    assert tokens == sorted(set(tokens))
    assert max(tokens) < 1 << 53


def test_a_claim_closes_lapsed_leases_of_other_queues_too(route: Route) -> None:
    lease = held(route, queue="elsewhere")
    expire(route, lease)
    assert route.db.task("t").state is State.LEASED
    assert route.db.claim(QUEUE) is None
    assert route.db.task("t").state is State.READY


def test_a_paused_queue_grants_nothing_until_it_goes_on(route: Route) -> None:
    ready(route)
    lease = held(route, "u", queue="elsewhere")
    route.db.queue(QUEUE, paused=True)
    route.db.queue("elsewhere", paused=True)
    assert route.other.claim(QUEUE) is None
    assert lease.renew() == TTL_S
    lease.complete()
    route.db.queue(QUEUE, paused=False)
    assert taken(route, by=route.other).task_id == "t"


def test_a_waiting_claim_gets_a_task_that_comes_meanwhile(route: Route) -> None:
    waiting = in_background(lambda: route.other.claim(QUEUE, wait=15))
    ready(route)
    lease = waiting()
    assert lease is not None
    assert lease.task_id == "t"


def test_a_claim_waits_no_longer_than_asked(route: Route) -> None:
    assert in_background(lambda: route.db.claim(QUEUE, wait="30ms"))() is None


def test_a_lease_is_found_again_by_its_handle_in_another_place(route: Route) -> None:
    lease = held(route)
    route.clock.advance(20)
    there = route.other.lease(lease.handle)
    assert (there.token, there.task_id, there.holder, there.input) == (lease.token, "t", "A", {"topic": "t"})
    assert there.expires_in == 40
    there.complete("there")
    with lost(route, LostReason.CLOSED):
        lease.renew()


def claim_five(client: Client) -> list[Lease | None]:
    """Five claims in a row."""
    return [client.claim(QUEUE) for _ in range(5)]
