"""Precedence of knobs: what the submit says, then the handler, then the queue, then the default."""

from __future__ import annotations

from typing import Any

import pytest

from relet.client.blocking_lease import Lease
from relet.core import border
from relet.core.model import State
from relet.core.rules.claim import Claim
from relet.core.rules.grant import Knobs
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, delay_ms, expire, left_ms, ready

SUBMIT: dict[str, Any] = {"ttl": 11, "max_hold": 110, "max_attempts": 1, "max_losses": 1}
HANDLER = Knobs(
    ttl_ms=22_000, max_hold_ms=220_000, max_attempts=2, max_losses=2, backoff_base_ms=7_000, backoff_cap_ms=9_000
)
FOR_QUEUE: dict[str, Any] = {"ttl": 33, "max_hold": 330, "max_attempts": 3, "max_losses": 3}
LEVELS: dict[str, dict[str, Any]] = {
    "submit": {"ttl": 11, "max_hold": 110, "attempts": 1, "losses": 1},
    "handler": {"ttl": 22, "max_hold": 220, "attempts": 2, "losses": 2},
    "queue": {"ttl": 33, "max_hold": 330, "attempts": 3, "losses": 3},
    "default": {"ttl": 60, "max_hold": None, "attempts": 5, "losses": 3},
}
FROM = {"submit": ["submit", "handler", "queue"], "handler": ["handler", "queue"], "queue": ["queue"], "default": []}


def prepare(route: Route, level: str) -> dict[str, Any]:
    """A task with knobs set at this level and at all below it; what must hold."""
    given = FROM[level]
    if "queue" in given:
        route.db.queue(QUEUE, **FOR_QUEUE)
    ready(route, **(SUBMIT if "submit" in given else {}))
    return LEVELS[level]


def claimed(route: Route, level: str) -> Lease:
    """A lease as a worker claims it, with the knobs of its handlers."""
    handlers = {QUEUE: HANDLER, "other": Knobs(ttl_ms=99_000)} if "handler" in FROM[level] else {}
    grants = route.call(Claim(queues=[QUEUE], holder="A", handlers=handlers))
    assert len(grants) == 1
    return route.db.lease(border.handle_text(grants[0].handle))


@pytest.mark.parametrize("level", LEVELS)
def test_the_ttl_is_taken_from_the_first_that_sets_it(route: Route, level: str) -> None:
    wanted = prepare(route, level)
    lease = claimed(route, level)
    assert lease.ttl == wanted["ttl"]
    assert left_ms(route) == wanted["ttl"] * 1_000


@pytest.mark.parametrize("level", LEVELS)
def test_the_longest_hold_is_taken_from_the_first_that_sets_it(route: Route, level: str) -> None:
    wanted = prepare(route, level)["max_hold"]
    lease = claimed(route, level)
    for _ in range(40):
        route.clock.advance(10)
        lease.renew()
        if wanted is not None and left_ms(route) < lease.ttl * 1_000:
            break
    else:
        assert wanted is None
        return
    claimed_at = route.db.task("t").claimed_at
    expires_at = route.db.task("t").expires_at
    assert claimed_at is not None and expires_at is not None
    assert (expires_at - claimed_at).total_seconds() == wanted


@pytest.mark.parametrize("level", LEVELS)
def test_the_number_of_attempts_is_taken_from_the_first_that_sets_it(route: Route, level: str) -> None:
    wanted = prepare(route, level)["attempts"]
    for _ in range(wanted - 1):
        assert claimed(route, level).fail("no", delay=0).state is State.READY
    assert claimed(route, level).fail("no", delay=0).state is State.FAILED
    assert route.db.task("t").reason == "attempts"


@pytest.mark.parametrize("level", LEVELS)
def test_the_number_of_losses_is_taken_from_the_first_that_sets_it(route: Route, level: str) -> None:
    wanted = prepare(route, level)["losses"]
    for n in range(wanted):
        assert route.db.task("t").state is State.READY, f"failed after {n} losses"
        expire(route, claimed(route, level))
        assert route.db.sweep() == 1
        route.clock.advance("1h")
    task = route.db.task("t")
    assert (task.state, task.losses) == (State.FAILED, wanted)


def test_a_ttl_of_the_claimer_stands_between_submit_and_handler(route: Route) -> None:
    route.db.queue(QUEUE, ttl=33)
    ready(route, "a", ttl=11)
    ready(route, "b")
    asked = Claim(queues=[QUEUE], holder="A", n=2, ttl_ms=15_000, handlers={QUEUE: HANDLER})
    assert [grant.ttl_ms for grant in route.call(asked)] == [11_000, 15_000]


def test_the_backoff_is_the_handlers_own(route: Route) -> None:
    ready(route)
    claimed(route, "handler").fail("no")
    assert 7_000 <= delay_ms(route) <= 7_000 * 1.2
    route.clock.advance("1h")
    expire(route, claimed(route, "default"))
    route.clock.advance("1h")
    assert route.db.sweep() == 1
    assert delay_ms(route) == 0, "the first loss is ready at once"


def test_a_handlers_cap_holds_for_its_backoff(route: Route) -> None:
    ready(route, max_attempts=9)
    for n in range(3):
        claimed(route, "handler").fail("no")
        least = min(9_000, 7_000 << n)
        assert least <= delay_ms(route) <= least * 1.2
        route.clock.advance("1h")


def test_knobs_of_another_kind_do_not_apply(route: Route) -> None:
    ready(route, kind="page")
    grants = route.call(Claim(queues=[QUEUE], holder="A", handlers={QUEUE: HANDLER}))
    assert grants[0].ttl_ms == 60_000


def test_a_queue_keeps_the_knobs_that_a_change_does_not_name(route: Route) -> None:
    route.db.queue(QUEUE, ttl=33, max_attempts=4)
    row = route.other.queue(QUEUE, max_losses=2, paused=True)
    assert (row.ttl_ms, row.max_attempts, row.max_losses, row.paused) == (33_000, 4, 2, True)
    row = route.db.queue(QUEUE, paused=False)
    assert (row.ttl_ms, row.max_attempts, row.max_losses, row.paused) == (33_000, 4, 2, False)


def test_limits_that_change_later_hold_for_the_next_lease_only(route: Route) -> None:
    ready(route)
    lease = claimed(route, "default")
    route.db.queue(QUEUE, max_attempts=1, ttl=5)
    assert lease.renew() == 60
    assert lease.fail("no", delay=0).state is State.READY
    assert claimed(route, "default").ttl == 5
