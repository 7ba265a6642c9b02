"""task, tasks, stats: looking changes nothing, and shows what is."""

from __future__ import annotations

import pytest

from relet.core.errors import NotFound
from relet.core.model import State, Task
from relet.core.rules.inspect import Figures, QueueStats
from relet.testing.conformance.evidence import refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import (
    QUEUE,
    STATES,
    TTL_S,
    brought_to,
    expire,
    held,
    parked,
    ready,
    taken,
    unknown_effect,
    wear_out,
)  # fmt: skip


def test_looking_never_writes_and_closes_no_expired_lease(route: Route) -> None:
    lease = held(route)
    ready(route, "delayed", delay=30)
    expire(route, lease, late=30)
    with unchanged(route):
        task = route.db.task("t")
        assert (task.state, task.live, task.holder) == (State.LEASED, False, "A")
        assert [item.id for item in route.db.tasks(state="leased")] == ["t"]
        assert route.db.task("delayed").state is State.READY
        assert len(route.db.history("t")) == 2
        assert (route.db.stats().queues[0].lapsed, route.db.stats().queues[0].delayed) == (1, 1)
        assert route.db.rejections() == []
        assert route.db.lease(lease.handle).token == lease.token
    assert route.rows()["leases"][0]["ended"] is None


def test_a_lease_reads_live_until_the_instant_it_expires(route: Route) -> None:
    held(route)
    route.clock.advance("59999ms")
    assert route.db.task("t").live
    assert [task.live for task in route.db.tasks()] == [True]
    route.clock.advance("1ms")
    assert not route.db.task("t").live
    assert [task.live for task in route.db.tasks()] == [False]


def test_a_lost_lease_is_shown_as_lost_and_a_held_one_as_held(route: Route) -> None:
    lease = held(route)
    assert route.other.lease(lease.handle).status == "held"
    route.clock.advance(59.9)
    assert route.other.lease(lease.handle).status == "lost", "by its own margin a holder lets go before the store"
    route.clock.advance(0.1)
    with unchanged(route):
        there = route.other.lease(lease.handle)
    assert (there.status, there.expires_in) == ("lost", 0)


def test_an_unknown_task_is_not_found(route: Route) -> None:
    for look in (route.db.task, route.db.history, route.db.result):
        with refused(route, NotFound, field="task_id", task_id="nobody"):
            look("nobody")


# -- pages -----------------------------------------------------------------------------------------------------------


def test_tasks_are_listed_in_the_order_in_which_they_were_made(route: Route) -> None:
    for name in ("c", "a", "b"):
        ready(route, name, priority=len(name))
    held(route, "first-by-priority", queue="elsewhere")
    assert ids(route.db.tasks()) == ["c", "a", "b", "first-by-priority"]


def test_pages_follow_each_other_without_gap_or_repeat(route: Route) -> None:
    route.db.submit_many(QUEUE, range(25), ids=[f"t{n:02}" for n in range(25)])
    seen: list[str] = []
    after: str | None = None
    sizes = []
    while page := route.db.tasks(limit=10, after=after):
        seen += ids(page)
        sizes.append(len(page))
        after = page[-1].id
    assert seen == [f"t{n:02}" for n in range(25)]
    assert sizes == [10, 10, 5]


def test_a_page_after_an_unknown_task_is_not_found(route: Route) -> None:
    with refused(route, NotFound, field="after", task_id="nobody"):
        route.db.tasks(after="nobody")


@pytest.mark.parametrize("state", STATES)
def test_tasks_are_found_by_state_in_pages_too(route: Route, state: State) -> None:
    for name in ("a", "b", "c"):
        brought_to(route, state, name)
    if state is State.DONE:
        ready(route, "noise")
    else:
        held(route, "noise", queue="elsewhere").complete()
    assert ids(route.db.tasks(state=state)) == ["a", "b", "c"]
    assert ids(route.db.tasks(state=state, limit=1, after="a")) == ["b"]
    assert {task.state for task in route.db.tasks(state=state)} == {state}
    other = State.CANCELLED if state is State.WAITING else State.WAITING
    assert route.db.tasks(state=other) == []


def test_every_condition_must_hold(route: Route) -> None:
    route.db.submit("a", id="1", labels={"team": "x", "day": "mon"})
    route.db.submit("a", id="2", kind="k", labels={"team": "x"})
    route.db.submit("b", id="3", kind="k", labels={"team": "y"})
    route.db.submit("b", id="4")
    assert ids(route.db.tasks(queue="a")) == ["1", "2"]
    assert ids(route.db.tasks(kind="k")) == ["2", "3"]
    assert ids(route.db.tasks(queue="b", kind="k")) == ["3"]
    assert ids(route.db.tasks(labels={"team": "x"})) == ["1", "2"]
    assert ids(route.db.tasks(labels={"team": "x", "day": "mon"})) == ["1"]
    assert ids(route.db.tasks(labels={"day": "tue"})) == []
    assert ids(route.db.tasks(labels={})) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("key", ["a.b", 'say "hi"', "it's", "$", "a[0]", "ключ", "\\", "%"])
def test_a_label_may_have_any_name(route: Route, key: str) -> None:
    for state in (State.FAILED, State.LEASED, State.READY):
        name = str(state)
        if state is State.READY:
            ready(route, name, labels={key: "x", "n": name})
        else:
            lease = held(route, name, labels={key: "x", "n": name})
            if state is State.FAILED:
                lease.fail("no", retry=False)
    ready(route, "other", labels={key: "y"})
    assert ids(route.db.tasks(labels={key: "x"})) == ["failed", "leased", "ready"]
    for state in (State.FAILED, State.LEASED, State.READY):
        assert ids(route.db.tasks(labels={key: "x"}, state=state)) == [str(state)]
    assert route.db.cancel_many(labels={key: "y"}, dry_run=True).ids == ["other"]


# -- figures ---------------------------------------------------------------------------------------------------------


def test_an_empty_store_has_no_figures(route: Route) -> None:
    stats = route.db.stats()
    assert (stats.queues, stats.total, stats.rejections) == ([], Figures(), {})


def test_every_task_is_counted_once_where_it_stands(route: Route) -> None:
    held(route, "at risk")
    route.clock.advance(f"{TTL_S * 1_000 // 3 + 1}ms")
    held(route, "live")
    held(route, "done").complete()
    wear_out(route, "failed")
    brought_to(route, State.CANCELLED, "cancelled")
    ready(route, "short", delay=30)
    ready(route, "long", delay="2h")
    ready(route, "ready")
    ready(route, "elsewhere", queue="elsewhere")
    with unchanged(route):
        figures = {stats.queue: stats for stats in route.db.stats().queues}
    assert figures["elsewhere"] == QueueStats(queue="elsewhere", ready=1)
    counted = figures[QUEUE]
    assert counted == QueueStats(
        queue=QUEUE, ready=1, delayed=2, leased=2, live=2, at_risk=1, done=1, failed=1, cancelled=1
    )


def test_what_waits_for_a_person_to_find_out_is_counted_apart(route: Route) -> None:
    effect = unknown_effect(route, "unknown")
    parked(route, id="asked")
    (figures,) = route.db.stats().queues
    assert (figures.waiting, figures.reconciling) == (2, 1)
    route.db.reconcile(effect.id, "not_applied", by="ann")
    (figures,) = route.db.stats().queues
    assert (figures.waiting, figures.reconciling, figures.ready) == (1, 0, 1)


def test_the_sum_is_that_of_all_queues_that_are_shown(route: Route) -> None:
    for queue in ("a", "b", "c"):
        ready(route, f"ready in {queue}", queue=queue)
        held(route, f"held in {queue}", queue=f"{queue}-held")
    route.clock.advance("1ms")
    assert route.db.stats().total == Figures(ready=3, leased=3, live=3)
    assert route.db.stats("a").total == Figures(ready=1)


def test_expired_leases_are_counted_as_lapsed_until_taken_back(route: Route) -> None:
    expire(route, held(route))
    (stats,) = route.db.stats().queues
    assert (stats.leased, stats.live, stats.lapsed, stats.ready) == (1, 0, 1, 0)
    route.db.sweep()
    (stats,) = route.db.stats().queues
    assert (stats.leased, stats.live, stats.lapsed, stats.ready, stats.takeovers) == (0, 0, 0, 1, 0)
    taken(route)
    (stats,) = route.db.stats().queues
    assert (stats.leased, stats.live, stats.takeovers) == (1, 1, 1)


def test_figures_of_one_queue_are_those_of_that_queue(route: Route) -> None:
    ready(route)
    ready(route, "u", queue="elsewhere")
    assert [stats.queue for stats in route.db.stats().queues] == ["elsewhere", QUEUE]
    assert [stats.queue for stats in route.db.stats(QUEUE).queues] == [QUEUE]
    assert route.db.stats("nowhere").queues == []


def ids(tasks: list[Task]) -> list[str]:
    return [task.id for task in tasks]
