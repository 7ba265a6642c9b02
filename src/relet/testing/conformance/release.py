"""release: a task given back unfinished; it costs no attempt."""

from __future__ import annotations

from typing import Any

import pytest

from relet.core.errors import Conflict
from relet.core.model import LostReason, State
from relet.testing.conformance.evidence import lost, refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, causes, delay_ms, expire, held, ready, taken


def test_a_released_task_is_ready_at_once_and_costs_no_attempt(route: Route) -> None:
    lease = held(route)
    ended = lease.release()
    assert (ended.state, ended.delay_ms) == (State.READY, 0)
    task = route.other.task("t")
    assert (task.state, task.live, task.attempt, task.failures, task.losses) == (State.READY, False, 1, 0, 0)
    second = taken(route, by=route.other)
    assert second.token > lease.token
    assert second.attempt == 1
    assert causes(route) == ["submitted", "claimed", "released", "claimed"]


def test_it_may_be_put_out_of_reach_for_a_while(route: Route) -> None:
    ended = held(route).release(delay="30s")
    assert ended.delay_ms == delay_ms(route) == 30_000
    route.clock.advance("29999ms")
    assert route.db.claim(QUEUE) is None
    route.clock.advance("1ms")
    assert taken(route).task_id == "t"


def test_releases_without_end_use_up_nothing(route: Route) -> None:
    ready(route, max_attempts=1, max_losses=1)
    for _ in range(10):
        taken(route).release()
    assert taken(route).complete() is None


def test_a_release_leaves_the_count_of_losses_in_a_row(route: Route) -> None:
    ready(route, max_losses=2)
    expire(route, taken(route))
    taken(route).release()
    expire(route, taken(route))
    assert route.db.sweep() == 1
    assert route.db.task("t").state is State.FAILED


def test_the_same_release_twice_is_one(route: Route) -> None:
    lease = held(route)
    ended = lease.release(delay=5)
    with unchanged(route):
        assert lease.release(delay=5) == ended
    route.clock.advance(5)
    second = taken(route)
    with unchanged(route):
        assert lease.release(delay=5) == ended
    assert second.renew() > 0


@pytest.mark.parametrize("delay", [1, "1h"])
def test_another_release_afterwards_is_a_conflict(route: Route, delay: Any) -> None:
    lease = held(route)
    lease.release()
    with refused(route, Conflict, token=lease.token, verb="released"):
        lease.release(delay=delay)


def test_a_holder_that_released_has_no_other_verb_left(route: Route) -> None:
    lease = held(route)
    lease.release()
    for verb in (lease.renew, lease.complete, lambda: lease.fail("no"), lambda: lease.save(1)):
        with lost(route, LostReason.RELEASED):
            verb()


def test_a_release_after_a_takeover_does_not_free_the_next_holders_task(route: Route) -> None:
    first = held(route)
    expire(route, first)
    second = taken(route, holder="B")
    with lost(route, LostReason.SUPERSEDED, current_token=second.token):
        first.release()
    assert route.db.claim(QUEUE) is None
    assert second.renew() > 0
