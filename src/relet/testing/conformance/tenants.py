"""Tenants: two namespaces in one store, that neither see nor touch each other."""

from __future__ import annotations

import pytest

from relet.core.errors import NotFound
from relet.core.model import State
from relet.testing.conformance.evidence import refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, expire, first, held, ready, taken, wear_out


def test_one_id_is_two_tasks_in_two_tenants(route: Route) -> None:
    ready(route)
    theirs = route.stranger.submit("other queue", {"topic": "other"}, id="t")
    assert theirs.created
    assert theirs.tenant == "elsewhere"
    assert route.db.task("t").tenant == "default"
    assert (route.db.task("t").queue, route.stranger.task("t").queue) == (QUEUE, "other queue")


def test_a_tenant_claims_only_its_own_tasks(route: Route) -> None:
    ready(route)
    with unchanged(route):
        assert route.stranger.claim(QUEUE) is None
        assert route.stranger.claim_many(QUEUE, 5) == []
    route.stranger.submit(QUEUE, id="theirs")
    assert taken(route, by=route.stranger).task_id == "theirs"
    assert taken(route).task_id == "t"


def test_a_tenant_finds_nothing_of_another(route: Route) -> None:
    lease = held(route)
    wear_out(route, "dead")
    other = route.stranger
    for look in (
        lambda: other.task("t"),
        lambda: other.history("t"),
        lambda: other.result("t"),
        lambda: other.cancel("t"),
        lambda: other.requeue("dead"),
        lambda: other.claim(task_id="t"),
        lambda: other.tasks(after="t"),
        lambda: other.lease(lease.handle),
    ):
        with refused(route, NotFound):
            look()
    with unchanged(route):
        assert (other.tasks(), other.stats().queues, other.rejections()) == ([], [], [])
        assert other.cancel_many().ids == other.requeue_many().ids == []


def test_feeds_show_only_the_own_tenant(route: Route) -> None:
    ready(route)
    lease = taken(route)
    lease.release()
    route.db.renew_many([lease])
    route.stranger.submit(QUEUE, id="theirs")
    assert [event.task_id for event in first(1, route.stranger.watch(after=0))] == ["theirs"]
    assert route.stranger.rejections() == []
    assert route.stranger.stats().rejections == {}
    assert len(route.db.rejections()) == 1


def test_an_exclusive_key_is_the_tenants_own(route: Route) -> None:
    held(route, exclusive="site")
    route.stranger.submit(QUEUE, id="theirs", exclusive="site")
    assert taken(route, by=route.stranger).task_id == "theirs"


def test_a_request_id_is_the_tenants_own(route: Route) -> None:
    ready(route)
    route.stranger.submit(QUEUE, id="theirs")
    mine = taken(route, holder="A", request_id="r")
    theirs = taken(route, by=route.stranger, holder="A", request_id="r")
    assert (mine.task_id, theirs.task_id) == ("t", "theirs")


def test_a_queue_is_paused_for_its_own_tenant(route: Route) -> None:
    ready(route)
    route.stranger.queue(QUEUE, paused=True)
    assert taken(route).task_id == "t"


def test_tokens_grow_over_all_tenants(route: Route) -> None:
    first_token = held(route).token
    route.stranger.submit(QUEUE)
    second_token = taken(route, by=route.stranger).token
    assert second_token > first_token
    assert held(route, "u").token > second_token


def test_a_lapse_is_closed_by_whoever_comes_by(route: Route) -> None:
    lease = held(route)
    expire(route, lease)
    route.stranger.sweep()
    assert route.db.task("t").state is State.READY
    with pytest.raises(NotFound):
        route.stranger.task("t")
