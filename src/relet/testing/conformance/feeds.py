"""history, watch, rejections: one event for each change, in order, for ever; refused writes in a bounded feed."""

from __future__ import annotations

import pytest

from relet.core import limits
from relet.core.errors import LeaseLost, NotFound
from relet.core.model import Event, LostReason
from relet.core.rules.inspect import History
from relet.testing.conformance.evidence import lost, unchanged
from relet.testing.conformance.guard import FORGERIES, answered, forged, requests
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import (
    QUEUE,
    TTL_S,
    causes,
    expire,
    first,
    held,
    in_background,
    ready,
    taken,
)  # fmt: skip


def test_the_history_of_a_task_tells_all_that_happened_in_order(route: Route) -> None:
    lease = held(route)
    route.clock.advance(10)
    lease.renew()
    lease.save(1)
    expire(route, lease)
    second = taken(route, holder="B")
    second.fail("no", delay=0)
    third = taken(route, holder="C")
    route.db.cancel("t", "enough")
    third.release()
    route.db.requeue("t")
    taken(route, holder="D").complete()
    assert causes(route) == [
        "submitted", "claimed", "saved", "lapsed", "claimed", "retried", "claimed", "cancel_requested", "cancelled",
        "requeued", "claimed", "completed",
    ]  # fmt: skip
    events = route.db.history("t")
    assert [event.holder for event in events] == [None, "A", "A", "A", "B", "B", "C", "C", "C", None, "D", "D"]
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    assert {(event.task_id, event.queue) for event in events} == {("t", QUEUE)}
    assert events[3].token == lease.token
    assert events[-1].state == "done"


def test_an_event_carries_the_date_at_which_it_happened(route: Route) -> None:
    ready(route)
    route.clock.advance(100)
    taken(route)
    submitted, claimed = route.db.history("t")
    assert (claimed.at - submitted.at).total_seconds() == 100
    assert claimed.at.timestamp() * 1_000 == route.clock.wall_ms()


def test_a_takeover_is_told_in_the_event_of_the_claim(route: Route) -> None:
    lease = held(route)
    expire(route, lease)
    taken(route, holder="B")
    event = route.db.history("t")[-1]
    assert event.detail["took_over"] == {"token": lease.token, "holder": "A", "reason": "expired"}


def test_a_long_history_is_read_page_by_page_to_its_end(route: Route) -> None:
    lease = held(route)
    for n in range(5):
        lease.save(n)
    events = route.db.history("t")
    pages: list[Event] = []
    while page := route.call(History(task_id="t", limit=3, after=pages[-1].seq if pages else 0)):
        assert len(page) <= 3
        pages += page
    assert pages == events
    assert len(events) == 7


# -- watch -----------------------------------------------------------------------------------------------------------


def test_a_watch_goes_on_after_what_was_seen(route: Route) -> None:
    ready(route, "a")
    seen = route.db.history("a")[-1].seq
    ready(route, "b")
    taken(route)
    events = first(2, route.db.watch(after=seen))
    assert [(event.task_id, event.kind) for event in events] == [("b", "submitted"), ("a", "claimed")]


def test_a_watch_from_the_beginning_shows_everything(route: Route) -> None:
    held(route).complete()
    assert [event.kind for event in first(3, route.db.watch(after=0))] == ["submitted", "claimed", "completed"]


def test_a_watch_of_a_queue_or_of_a_task_shows_no_other(route: Route) -> None:
    for queue in ("a", "b", "a", "b"):
        route.db.submit(queue)
    last = ready(route, "last", queue="b")
    assert [event.queue for event in first(3, route.db.watch(queue="b", after=0))] == ["b"] * 3
    assert [event.task_id for event in first(1, route.db.watch(task_id="last", after=0))] == [last.id]


def test_a_watch_shows_what_happens_while_it_waits(route: Route) -> None:
    ready(route, "before")
    seen = route.db.history("before")[-1].seq
    changes = route.other.watch(after=seen)
    waiting = in_background(lambda: first(1, changes))
    ready(route, "after")
    assert [event.task_id for event in waiting()] == ["after"]


def test_a_watch_from_now_on_shows_nothing_of_before(route: Route) -> None:
    for name in ("a", "b"):
        ready(route, name)
    changes = route.other.watch()
    waiting = in_background(lambda: first(1, changes))
    n = 0
    while not waiting.is_over():  # when "now" is, the watch decides as it starts: tasks come until it shows one
        ready(route, f"after-{n}")
        n += 1
    (shown,) = waiting()
    assert shown.task_id is not None
    assert shown.task_id.startswith("after-")


# -- rejections ------------------------------------------------------------------------------------------------------


def test_a_refused_write_is_told_with_who_tried_what_and_how_late(route: Route) -> None:
    lease = held(route)
    route.clock.advance(TTL_S + 2)
    second = taken(route, holder="B")
    for verb in (lease.renew, lambda: lease.save(1), lambda: lease.complete("late"), lambda: lease.fail("late")):
        with lost(route, LostReason.SUPERSEDED):
            verb()
    feed = route.other.rejections("t")
    assert [rejection.verb for rejection in feed] == ["fail", "complete", "save", "renew"]
    assert {rejection.holder for rejection in feed} == {"A"}
    assert {(rejection.token, rejection.current_token) for rejection in feed} == {(lease.token, second.token)}
    assert {rejection.late_ms for rejection in feed} == {2_000}
    assert {rejection.reason for rejection in feed} == {LostReason.SUPERSEDED}
    assert [rejection.result for rejection in feed] == [None, "late", None, None]
    assert route.db.stats().rejections == {"superseded": 4}


def test_the_feed_is_read_page_by_page_newest_first_and_by_task(route: Route) -> None:
    leases = [held(route, name) for name in ("a", "b")]
    expire(route, leases[0])
    for _ in range(2):
        route.db.renew_many(leases)
    feed = route.db.rejections()
    assert [rejection.task_id for rejection in feed] == ["b", "a", "b", "a"]
    assert [rejection.seq for rejection in route.db.rejections(limit=2)] == [item.seq for item in feed[:2]]
    assert route.db.rejections(limit=2, before=feed[1].seq) == feed[2:]
    assert [rejection.task_id for rejection in route.db.rejections("a")] == ["a", "a"]


def test_the_feed_is_bounded_while_the_count_goes_on(route: Route) -> None:
    lease = held(route)
    lease.release()
    many = limits.REJECTIONS_KEPT + 50
    answers = route.db.renew_many([lease] * many)
    assert all(isinstance(answer, LeaseLost) for answer in answers)
    assert len(route.db.rejections(limit=limits.PAGE_ITEMS_MAX)) <= limits.REJECTIONS_KEPT
    assert route.db.stats().rejections == {"released": many}


def test_what_was_never_held_leaves_no_trace_in_the_feed(route: Route) -> None:
    lease, neighbour = held(route), held(route, "u")
    for how in FORGERIES:
        with pytest.raises(NotFound):
            answered(route, requests(forged(lease, how, neighbour))["complete"])
    with unchanged(route):
        assert route.db.rejections() == []
