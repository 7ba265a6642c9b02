"""Waiting for the store: the clock is read after the lock, so that nobody is judged by a time before the wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relet.client.blocking_lease import Lease
from relet.core.model import LostReason, State
from relet.testing.conformance.evidence import lost_by_lapse
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, TTL_S, expire, held, in_background, ready

VERBS: dict[str, Callable[[Lease], Any]] = {
    "renew": lambda lease: lease.renew(),
    "save": lambda lease: lease.save(1),
    "complete": lambda lease: lease.complete("late"),
    "fail": lambda lease: lease.fail("late"),
    "release": lambda lease: lease.release(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_lease_that_expires_while_its_verb_waits_for_the_store_is_lost(route: Route, verb: str) -> None:
    lease = held(route)
    with lost_by_lapse(route, lease.token):
        with route.locked() as somebody_waits:
            answer = in_background(lambda: VERBS[verb](lease))
            somebody_waits()
            expire(route, lease)
        answer()


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_waited_and_is_still_in_time_is_taken(route: Route, verb: str) -> None:
    lease = held(route)
    with route.locked() as somebody_waits:
        answer = in_background(lambda: VERBS[verb](lease))
        somebody_waits()
        route.clock.advance(f"{TTL_S * 1_000 - 1}ms")
    answer()
    assert route.db.task("t").losses == 0


def test_a_claim_that_waited_takes_what_expired_meanwhile(route: Route) -> None:
    lease = held(route)
    with route.locked() as somebody_waits:
        answer = in_background(lambda: route.db.claim(QUEUE, holder="B"))
        somebody_waits()
        expire(route, lease)
    second = answer()
    assert second is not None
    assert second.token > lease.token
    assert second.expires_in <= TTL_S


def test_a_lease_that_was_waited_for_lasts_its_whole_ttl_from_the_grant(route: Route) -> None:
    ready(route)
    with route.locked() as somebody_waits:
        answer = in_background(lambda: route.db.claim(QUEUE))
        somebody_waits()
        route.clock.advance(40)
    assert answer() is not None
    route.clock.advance("59999ms")
    assert route.db.task("t").live
    route.clock.advance("1ms")
    assert not route.db.task("t").live


def test_the_holders_own_deadline_counts_the_wait(route: Route) -> None:
    ready(route)
    with route.locked() as somebody_waits:
        answer = in_background(lambda: route.db.claim(QUEUE))
        somebody_waits()
        route.clock.advance(40)
    lease = answer()
    assert lease is not None
    assert lease.expires_in == TTL_S - 40, "measured from before the request left"


def test_a_sweep_that_waited_takes_back_what_expired_meanwhile(route: Route) -> None:
    lease = held(route)
    with route.locked() as somebody_waits:
        answer = in_background(route.db.sweep)
        somebody_waits()
        expire(route, lease)
    assert answer() == 1
    assert route.db.task("t").state is State.READY


def test_a_cancel_that_waited_finds_the_lease_expired(route: Route) -> None:
    lease = held(route)
    with route.locked() as somebody_waits:
        answer = in_background(lambda: route.db.cancel("t", "enough"))
        somebody_waits()
        expire(route, lease)
    assert answer().state is State.CANCELLED


def test_a_repeated_claim_that_waited_is_judged_by_the_time_after_the_wait(route: Route) -> None:
    ready(route)
    first = route.db.claim(QUEUE, holder="A", request_id="r")
    assert first is not None
    with lost_by_lapse(route, first.token, LostReason.EXPIRED):
        with route.locked() as somebody_waits:
            answer = in_background(lambda: route.db.claim(QUEUE, holder="A", request_id="r"))
            somebody_waits()
            expire(route, first)
        answer()
