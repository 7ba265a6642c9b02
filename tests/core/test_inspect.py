"""Reads: they show what is, and never move anything on."""

import msgspec
import pytest

from relet.core.errors import NotFound
from relet.core.model import Cause, State
from relet.core.rules.cancel import Cancel
from relet.core.rules.fail import Fail
from relet.core.rules.inspect import (
    Changes,
    CountTasks,
    FindTask,
    History,
    ListTasks,
    Look,
    QueueStats,
    Rejections,
)
from relet.core.rules.set_queue import SetQueue
from relet.core.tx import TaskFilter
from tests.core.scene import TTL_MS


def listed(scene, limit=100, after=None, **which):
    answer = scene.ask(ListTasks(which=TaskFilter(**which), limit=limit, after=after))
    return [task.id for task in answer] if isinstance(answer, list) else answer


@pytest.mark.parametrize(
    "ask", [FindTask(task_id="x"), History(task_id="x"), ListTasks(which=TaskFilter(), after="x")]
)
def test_what_nobody_knows_is_not_found(scene, ask):
    refused = scene.ask(ask)
    assert isinstance(refused, NotFound)
    assert refused.detail["task_id"] == "x"


def test_pages_go_on_after_the_last_id_in_the_order_of_making(scene):
    scene.submit(*"edcba")
    assert listed(scene, limit=2) == ["e", "d"]
    assert listed(scene, limit=2, after="d") == ["c", "b"]
    assert listed(scene, after="a") == []


def test_tasks_are_listed_by_queue_kind_state_and_labels(scene):
    scene.submit("a", labels={"x": "1"})
    scene.submit("b", queue="r", kind="l")
    scene.held("c")
    scene.complete(scene.held("d"))
    scene.ask(Fail(handle=scene.held("e").handle, error="no", retry=False))
    scene.submit("f", labels={"x": "1"})
    scene.ask(Cancel(task_id="f", reason=""))
    assert listed(scene, queue="r") == listed(scene, kind="l") == ["b"]
    assert listed(scene, labels={"x": "1"}) == ["a", "f"]
    assert listed(scene, labels={"x": "2"}) == listed(scene, labels={"y": "1"}) == []
    for state, ids in [("ready", "ab"), ("leased", "c"), ("done", "d"), ("failed", "e"), ("cancelled", "f")]:
        assert listed(scene, state=State(state)) == list(ids)
    assert listed(scene, state=State.CANCELLED, labels={"x": "1"}) == ["f"]
    assert listed(scene, state=State.LEASED, labels={"x": "1"}) == listed(scene, state=State.WAITING) == []


def test_an_expired_lease_reads_leased_and_not_live_and_reading_it_writes_nothing(scene):
    scene.held()
    scene.pass_ms(TTL_MS)
    before = scene.state()
    task = scene.task()
    assert (task.state, task.live) == (State.LEASED, False)
    assert scene.state() == before


def test_history_goes_on_after_a_sequence_number(scene):
    grant = scene.held()
    scene.complete(grant)
    events = scene.events()
    assert [event.kind for event in events] == [Cause.SUBMITTED, Cause.CLAIMED, Cause.COMPLETED]
    assert scene.ask(History(task_id="t", after=events[0].seq)) == events[1:]
    assert scene.ask(History(task_id="t", limit=1)) == events[:1]
    assert [event.token for event in events] == [None, grant.handle.token, grant.handle.token]


def test_changes_begin_where_the_feed_ends_and_go_on_by_cursor(scene):
    assert scene.ask(Changes()).cursor == 0
    scene.submit("a")
    start = scene.ask(Changes())
    assert (start.events, start.cursor) == ([], 1)
    scene.submit("b", queue="r")
    scene.submit("c")
    page = scene.ask(Changes(after=start.cursor))
    assert [event.task_id for event in page.events] == ["b", "c"]
    assert page.cursor == page.events[-1].seq
    assert [event.task_id for event in scene.ask(Changes(after=0, queue="r")).events] == ["b"]
    assert [event.task_id for event in scene.ask(Changes(after=0, task_id="c")).events] == ["c"]
    nothing = scene.ask(Changes(after=page.cursor))
    assert (nothing.events, nothing.cursor) == ([], page.cursor)


def test_figures_divide_the_leased_ones_and_never_miss_a_task(scene):
    scene.submit("ready", "ready2")
    scene.submit("late", delay_ms=3_600_000)
    scene.complete(scene.held("done"))
    scene.held("taken")
    scene.pass_ms(TTL_MS)
    scene.claim(task_id="taken")
    scene.held("at-risk", ttl_ms=30_000)
    scene.pass_ms(10_001)
    scene.held("live")
    scene.held("lapsed", ttl_ms=100)
    scene.submit("gone")
    scene.ask(Cancel(task_id="gone", reason=""))
    scene.pass_ms(100)
    scene.submit("elsewhere", queue="r")
    stats = scene.ask(CountTasks())
    assert stats.queues == [
        QueueStats(
            queue="q", ready=2, delayed=1, leased=4, live=3, at_risk=1, lapsed=1, done=1, cancelled=1, takeovers=1
        ),
        QueueStats(queue="r", ready=1),
    ]
    assert (stats.total.ready, stats.total.leased, stats.total.done) == (3, 4, 1)
    assert [queue.queue for queue in scene.ask(CountTasks(queue="r")).queues] == ["r"]
    assert stats.rejections == {}


def test_refused_writes_are_counted_by_reason_and_listed_newest_first(scene):
    a, b = scene.held("a"), scene.held("b")
    scene.complete(a)
    scene.pass_ms(TTL_MS)
    for grant in (a, b, b):
        scene.ask(Fail(handle=grant.handle, error="no"))
    assert scene.ask(CountTasks()).rejections == {"closed": 1, "expired": 2}
    feed = scene.ask(Rejections())
    assert [item.task_id for item in feed] == ["b", "b", "a"]
    assert [item.task_id for item in scene.ask(Rejections(before=feed[1].seq))] == ["a"]
    assert [item.task_id for item in scene.ask(Rejections(task_id="b", limit=1))] == ["b"]


def test_a_handle_is_looked_at_with_the_time_left_now_and_without_a_write(scene):
    grant = scene.held()
    scene.pass_ms(20_000)
    looked = scene.ask(Look(handle=grant.handle))
    assert (looked.lost, looked.grant.left_ms, looked.grant.held_ms) == (None, 40_000, 20_000)
    scene.pass_ms(40_000)
    before = scene.state()
    looked = scene.ask(Look(handle=grant.handle))
    assert (looked.lost, looked.grant.left_ms) == ("expired", 0)
    assert scene.state() == before


@pytest.mark.parametrize("changed", [{"secret": "x"}, {"token": 99}], ids=["secret", "token"])
def test_the_lease_of_a_forged_handle_is_shown_to_nobody(scene, changed):
    grant = scene.held()
    refused = scene.ask(Look(handle=msgspec.structs.replace(grant.handle, **changed)))
    assert isinstance(refused, NotFound)
    assert refused.code == "RELET-HANDLE"


def test_a_knob_that_is_not_given_stays_as_it_was(scene):
    row = scene.ask(SetQueue(name="q", ttl_ms=5_000, max_losses=7))
    assert (row.ttl_ms, row.max_losses, row.paused, row.timeout_ms) == (5_000, 7, False, None)
    row = scene.ask(SetQueue(name="q", paused=True, timeout_ms=9))
    assert (row.ttl_ms, row.max_losses, row.paused, row.timeout_ms) == (5_000, 7, True, 9)
    assert scene.ask(SetQueue(name="r")).ttl_ms is None
