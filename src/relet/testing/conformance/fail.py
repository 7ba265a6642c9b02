"""fail: a failure is counted, tried again after the backoff, and not for ever."""

from __future__ import annotations

from typing import Any

import pytest

from relet.core.errors import Conflict
from relet.core.model import LostReason, State
from relet.testing.conformance.evidence import lost, refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, causes, date, delay_ms, expire, held, ms_until, ready, taken

CAP_MS = 300_000


def test_a_failure_is_counted_and_the_task_tried_again_later(route: Route) -> None:
    lease = held(route)
    ended = lease.fail("no route to host", code="NET-1")
    task = route.other.task("t")
    assert (ended.state, task.state, task.live) == (State.READY, State.READY, False)
    assert (task.failures, task.losses, task.attempt) == (1, 0, 2)
    assert (task.error, task.code, task.reason) == ("no route to host", "NET-1", None)
    assert 1_000 <= ended.delay_ms <= 1_200
    assert delay_ms(route) == ended.delay_ms
    assert causes(route) == ["submitted", "claimed", "retried"]


def test_it_is_granted_when_the_delay_has_passed_and_not_before(route: Route) -> None:
    ended = held(route).fail("no")
    route.clock.advance(f"{ended.delay_ms - 1}ms")
    assert route.db.claim(QUEUE) is None
    route.clock.advance("1ms")
    assert taken(route).attempt == 2


@pytest.mark.case("RD-04")
def test_the_backoff_doubles_up_to_its_cap_and_never_overflows(route: Route) -> None:
    ready(route, max_attempts=10_000)
    for n in range(60):
        ended = taken(route).fail("no")
        least = min(CAP_MS, 1_000 << n)
        assert least <= ended.delay_ms <= least * 1.2, f"failure {n + 1}"
        route.clock.advance("1h")


@pytest.mark.case("TS-05")
@pytest.mark.parametrize(("delay", "least"), [(60, 60_000), ("2h", 7_200_000), ("1ms", 1)])
def test_jitter_is_added_after_the_delay_that_was_asked_for(route: Route, delay: Any, least: int) -> None:
    ended = held(route).fail("no", delay=delay)
    assert least <= ended.delay_ms <= least * 1.2
    route.clock.advance(f"{least - 1}ms")
    assert route.db.claim(QUEUE) is None
    route.clock.advance(f"{least // 5 + 1}ms")
    assert taken(route).task_id == "t"


@pytest.mark.case("TS-05")
def test_a_delay_of_nothing_is_immediate(route: Route) -> None:
    assert held(route).fail("no", delay=0).delay_ms == 0
    assert taken(route).attempt == 2


@pytest.mark.case("TS-05")
def test_tasks_that_failed_together_do_not_come_back_together(route: Route) -> None:
    route.db.submit_many(QUEUE, range(200))
    for lease in route.db.claim_many(QUEUE, 200):
        lease.fail("no", delay=60)
    seconds = [ms_until(route, task.due_at) // 1_000 for task in route.db.tasks(limit=200)]
    assert min(seconds) >= 60
    assert max(seconds) <= 72
    assert max(seconds.count(second) for second in set(seconds)) <= 200 * 0.15


def test_a_permanent_failure_is_a_dead_letter_at_once(route: Route) -> None:
    ended = held(route).fail("wrong input", retry=False, code="BAD")
    task = route.db.task("t")
    assert (ended.state, ended.reason, ended.delay_ms) == (State.FAILED, "permanent", 0)
    assert (task.state, task.reason, task.error, task.code) == (State.FAILED, "permanent", "wrong input", "BAD")
    assert task.due_at is None
    route.clock.advance("1d")
    assert route.db.claim(QUEUE) is None
    assert causes(route)[-1] == "failed"


def test_the_last_attempt_that_fails_makes_a_dead_letter(route: Route) -> None:
    ready(route, max_attempts=3)
    for attempt in (1, 2):
        lease = taken(route)
        assert lease.attempt == attempt
        assert lease.fail("no", delay=0).state is State.READY
    ended = taken(route).fail("no", delay=0)
    assert (ended.state, ended.reason) == (State.FAILED, "attempts")
    task = route.db.task("t")
    assert (task.failures, task.attempt, task.reason) == (3, 4, "attempts")


def test_failures_and_losses_count_together(route: Route) -> None:
    ready(route, max_attempts=3, max_losses=9)
    taken(route).fail("no", delay=0)
    expire(route, taken(route))
    route.clock.advance("1h")
    lease = taken(route)
    assert lease.attempt == 3
    assert lease.fail("no", delay=0).reason == "attempts"
    task = route.db.task("t")
    assert (task.failures, task.losses) == (2, 1)


def test_a_failure_past_the_deadline_is_the_last_one(route: Route) -> None:
    lease = held(route, ttl=60, deadline=date(route, 30))
    route.clock.advance(30)
    ended = lease.fail("no", delay=0)
    assert (ended.state, ended.reason) == (State.FAILED, "deadline")


def test_a_failure_before_the_deadline_is_tried_again(route: Route) -> None:
    lease = held(route, deadline=date(route, 30))
    route.clock.advance("29999ms")
    assert lease.fail("no", delay=0).state is State.READY


def test_the_same_failure_twice_is_one_and_has_one_answer(route: Route) -> None:
    lease = held(route)
    ended = lease.fail("no", code="E")
    with unchanged(route):
        assert lease.fail("no", code="E") == ended
    second = taken_later(route)
    with unchanged(route):
        assert lease.fail("no", code="E") == ended
    assert second.renew() > 0


@pytest.mark.parametrize(
    "other",
    [{"error": "yes"}, {"error": "no", "code": "E"}, {"error": "no", "retry": False}, {"error": "no", "delay": 1}],
)
def test_another_failure_afterwards_is_a_conflict(route: Route, other: dict[str, Any]) -> None:
    lease = held(route)
    lease.fail("no")
    with refused(route, Conflict, token=lease.token, verb="failed"):
        lease.fail(**other)


def test_a_holder_that_failed_has_no_other_verb_left(route: Route) -> None:
    lease = held(route)
    lease.fail("no")
    for verb in (lease.renew, lease.complete, lease.release, lambda: lease.save(1)):
        with lost(route, LostReason.CLOSED):
            verb()


@pytest.mark.case("PL-01")
def test_an_error_of_any_length_and_any_characters_is_a_failure_all_the_same(route: Route) -> None:
    lease = held(route)
    assert lease.fail("x\x00\ud800" + "y" * 20_000, retry=False).state is State.FAILED
    error = route.db.task("t").error
    assert error is not None
    assert error.startswith("x\ufffd\ufffdyyy")
    assert len(error) == 10_000


def taken_later(route: Route) -> Any:
    """The next lease, once every backoff has passed."""
    route.clock.advance("1h")
    return taken(route)
