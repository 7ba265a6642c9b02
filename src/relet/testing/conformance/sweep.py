"""sweep: lapsed leases are taken back one by one, each judged anew; one lost worker is no storm and no loop."""

from __future__ import annotations

import pytest

from relet.core.model import LostReason, State
from relet.testing.conformance.evidence import lost, only_lapsed, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import (
    QUEUE,
    TTL_S,
    causes,
    date,
    delay_ms,
    expire,
    held,
    ms_until,
    ready,
    taken,
)

CROWD = 400


def test_a_lapse_is_written_down_and_nothing_else(route: Route) -> None:
    lease = held(route)
    held(route, "long", ttl=300)
    expire(route, lease)
    before = route.rows()
    assert route.db.sweep() == 1
    only_lapsed(before, route.rows(), lease.token)
    task = route.db.task("t")
    assert (task.state, task.losses, task.failures, task.attempt) == (State.READY, 1, 0, 2)
    assert task.code == "RELET-LAPSED"
    assert task.error is not None and "A" in task.error
    event = route.db.history("t")[-1]
    assert (event.kind, event.token, event.holder, event.detail["silent_ms"]) == (
        "lapsed", lease.token, "A", TTL_S * 1_000
    )  # fmt: skip


def test_what_has_not_expired_is_left_alone_to_the_millisecond(route: Route) -> None:
    lease = held(route)
    with unchanged(route):
        route.clock.advance("59999ms")
        assert route.db.sweep() == 0
    assert lease.renew() == TTL_S


def test_a_renewed_lease_is_not_swept_at_its_old_expiry(route: Route) -> None:
    lease = held(route)
    route.clock.advance(40)
    lease.renew()
    for _ in range(2):
        route.clock.advance("29999ms")
        assert route.other.sweep() == 0
        assert route.db.task("t").live
    assert lease.renew() == TTL_S
    assert causes(route) == ["submitted", "claimed"]


def test_a_second_sweep_finds_nothing(route: Route) -> None:
    expire(route, held(route))
    assert route.db.sweep() == 1
    with unchanged(route):
        assert route.other.sweep() == 0


@pytest.mark.case("RD-06")
def test_leases_that_are_kept_hide_none_that_lapsed(route: Route) -> None:
    route.db.submit_many("kept", range(100))
    kept = route.db.claim_many("kept", 100)
    held(route)
    route.clock.advance(30)
    route.db.renew_many(kept)
    route.clock.advance(30)
    assert route.other.sweep() == 1
    assert route.db.task("t").state is State.READY
    assert all(answer == TTL_S for answer in route.db.renew_many(kept))


@pytest.mark.case("RD-08")
def test_each_lease_lapses_after_its_own_ttl(route: Route) -> None:
    held(route, "short", ttl=3)
    held(route, "long", ttl=600)
    route.clock.advance(3)
    assert route.db.sweep() == 1
    assert taken(route).task_id == "short"
    assert route.db.task("long").live


@pytest.mark.case("TS-03")
def test_the_first_loss_is_ready_at_once_and_later_ones_after_the_backoff(route: Route) -> None:
    ready(route, max_losses=9, max_attempts=9)
    delays = []
    for _ in range(4):
        expire(route, taken(route))
        assert route.db.sweep() == 1
        delays.append(delay_ms(route))
        route.clock.advance("1h")
    assert delays[0] == 0
    for n, delay in enumerate(delays[1:]):
        assert 1_000 << n <= delay <= (1_000 << n) * 1.2


def test_a_task_that_loses_every_worker_is_a_dead_letter_while_others_go_on(route: Route) -> None:
    ready(route, "poison")
    ready(route, "good")
    for _ in range(3):
        lease = route.db.claim(task_id="poison", holder="W")
        assert lease is not None
        expire(route, lease)
        assert route.db.sweep() == 1
        route.clock.advance("1h")
    task = route.db.task("poison")
    assert (task.state, task.reason, task.losses, task.failures) == (State.FAILED, "losses", 3, 0)
    assert task.error is not None and "W" in task.error
    assert causes(route, "poison").count("lapsed") == 2
    assert causes(route, "poison")[-1] == "failed"
    assert taken(route).task_id == "good"


def test_losses_use_up_attempts(route: Route) -> None:
    ready(route, max_attempts=2, max_losses=9)
    for _ in range(2):
        expire(route, taken(route))
        route.clock.advance("1h")
        assert route.db.sweep() == 1
    assert (route.db.task("t").state, route.db.task("t").reason) == (State.FAILED, "attempts")


def test_a_task_held_past_its_deadline_fails_when_its_lease_lapses(route: Route) -> None:
    lease = held(route, deadline=date(route, 30))
    route.clock.advance(30)
    assert route.db.sweep() == 0
    assert route.db.task("t").live
    route.clock.advance(30)
    assert route.db.sweep() == 1
    task = route.db.task("t")
    assert (task.state, task.reason, task.losses) == (State.FAILED, "deadline", 1)
    with lost(route, LostReason.EXPIRED):
        lease.complete("late")


@pytest.mark.case("TS-03")
def test_a_crowd_of_lapses_in_one_second_is_spread(route: Route) -> None:
    route.db.submit_many(QUEUE, range(CROWD))
    leases = route.db.claim_many(QUEUE, CROWD)
    expire(route, leases[0])
    assert route.db.sweep() == CROWD
    tasks = route.db.tasks(limit=CROWD)
    assert {task.state for task in tasks} == {State.READY}, "nobody is given up for an outage of all"
    waits = [ms_until(route, task.due_at) for task in tasks]
    assert waits.count(0) == 32
    assert max(waits) <= 10_000
    per_second = [wait // 1_000 for wait in waits]
    assert max(per_second.count(second) for second in set(per_second)) <= CROWD * 0.15
    route.clock.advance(10)
    assert len(route.db.claim_many(QUEUE, CROWD)) >= 64


def test_a_crowd_is_spread_over_no_more_than_a_ttl(route: Route) -> None:
    route.db.submit_many(QUEUE, range(60), ttl=2)
    leases = route.db.claim_many(QUEUE, 60)
    expire(route, leases[0])
    assert route.db.sweep() == 60
    waits = [ms_until(route, task.due_at) for task in route.db.tasks()]
    assert waits.count(0) == 32
    assert max(waits) <= 2_000


def test_lapses_of_another_second_are_not_held_against_a_task(route: Route) -> None:
    route.db.submit_many(QUEUE, range(32))
    expire(route, route.db.claim_many(QUEUE, 32)[0])
    assert route.db.sweep() == 32
    route.clock.advance(1)
    late = held(route, "late", queue="elsewhere", ttl=1)
    expire(route, late)
    assert route.db.sweep() == 1
    assert delay_ms(route, "late") == 0
