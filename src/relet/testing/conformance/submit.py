"""submit: tasks into a queue, all or none; an id stands for one content for ever."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

import pytest

from relet.core.errors import Conflict
from relet.core.model import State
from relet.testing.conformance.evidence import refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, STATES, brought_to, date, delay_ms, held, ready, taken


def test_a_submitted_task_is_ready_and_unowned(route: Route) -> None:
    task = route.db.submit(QUEUE, {"topic": "grain"}, id="r-1")
    assert (task.id, task.queue, task.kind, task.state) == ("r-1", QUEUE, QUEUE, State.READY)
    assert (task.attempt, task.failures, task.losses, task.priority) == (1, 0, 0, 0)
    assert task.input == {"topic": "grain"}
    assert task.created
    assert not task.live
    assert (task.token, task.holder, task.expires_at, task.due_at, task.result) == (None, None, None, None, None)
    assert task.created_at.timestamp() * 1_000 == route.clock.wall_ms()
    assert task.created_at.tzinfo is not None


def test_what_a_submit_answers_is_what_is_read_afterwards(route: Route) -> None:
    made = ready(route, priority=7, labels={"team": "a"}, exclusive="site", kind="k", deadline=date(route, 60))
    read = route.other.task("t")
    assert read.created is False
    assert [getattr(read, name) for name in ("input", "priority", "labels", "exclusive", "kind", "deadline")] == [
        {"topic": "t"}, 7, {"team": "a"}, "site", "k", date(route, 60),
    ]  # fmt: skip
    assert (made.id, made.updated_at, made.state) == (read.id, read.updated_at, read.state)


def test_ids_are_made_where_none_are_given(route: Route) -> None:
    first, second = route.db.submit(QUEUE, 1), route.db.submit(QUEUE, 1)
    assert first.created and second.created
    assert first.id != second.id


def test_repeating_a_submit_answers_the_task_that_is_there(route: Route) -> None:
    ready(route)
    with unchanged(route):
        again = ready(route)
    assert again.id == "t"
    assert not again.created


def test_the_order_of_keys_is_no_content(route: Route) -> None:
    route.db.submit(QUEUE, {"a": 1, "b": [1, {"c": 2, "d": 3}]}, id="t")
    with unchanged(route):
        again = route.other.submit(QUEUE, {"b": [1, {"d": 3, "c": 2}], "a": 1}, id="t")
    assert not again.created


@pytest.mark.parametrize("state", STATES)
def test_a_repeated_submit_finds_the_task_in_every_state_and_starts_nothing(route: Route, state: State) -> None:
    brought_to(route, state)
    with unchanged(route):
        again = ready(route)
    assert (again.state, again.created) == (state, False)


@pytest.mark.parametrize("state", STATES)
def test_an_id_never_gets_a_second_content(route: Route, state: State) -> None:
    brought_to(route, state)
    with refused(route, Conflict, task_id="t") as caught:
        route.db.submit(QUEUE, {"topic": "other"}, id="t")
    assert "t exists with other input" in str(caught.value)


def test_queue_and_kind_are_content(route: Route) -> None:
    ready(route)
    with refused(route, Conflict, task_id="t"):
        ready(route, queue="elsewhere")
    with refused(route, Conflict, task_id="t"):
        ready(route, kind="elsewhere")


def test_options_are_no_content_and_a_repeat_does_not_change_them(route: Route) -> None:
    ready(route, priority=1, labels={"team": "a"})
    with unchanged(route):
        again = ready(route, priority=9, labels={"team": "b"}, delay=50, max_attempts=1, exclusive="x")
    assert (again.priority, again.labels, again.exclusive, again.due_at) == (1, {"team": "a"}, None, None)


def test_the_kind_is_the_name_of_the_queue_unless_given(route: Route) -> None:
    assert route.db.submit("mails").kind == "mails"
    assert route.db.submit("mails", kind="invoice").kind == "invoice"


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -(2**63), 2**63 - 1, 0.1, -1.5e300, "", "ünï → 漢字 🌾", [], {}, [[{"a": [None, ""]}]]],
)
def test_any_json_value_is_an_input_and_comes_back_equal(route: Route, value: Any) -> None:
    route.db.submit(QUEUE, value, id="t")
    assert route.other.task("t").input == value
    lease = taken(route)
    assert lease.input == value
    assert type(lease.input) is type(value)


def test_many_are_answered_in_the_order_of_their_inputs(route: Route) -> None:
    tasks = route.db.submit_many(QUEUE, [3, 1, 2], ids=["c", "a", None])
    assert [task.input for task in tasks] == [3, 1, 2]
    assert [task.id for task in tasks[:2]] == ["c", "a"]
    assert all(task.created for task in tasks)


def test_nothing_to_submit_is_an_empty_answer(route: Route) -> None:
    with unchanged(route):
        assert route.db.submit_many(QUEUE, []) == []


def test_many_are_stored_all_or_none(route: Route) -> None:
    ready(route, "b")
    with refused(route, Conflict, task_id="b"):
        route.db.submit_many(QUEUE, [1, 2, 3], ids=["a", "b", "c"])
    assert [task.id for task in route.db.tasks()] == ["b"]


def test_many_with_some_there_already_stores_the_rest(route: Route) -> None:
    route.db.submit_many(QUEUE, [1, 2], ids=["a", "b"])
    tasks = route.db.submit_many(QUEUE, [1, 2, 3], ids=["a", "b", "c"])
    assert [task.created for task in tasks] == [False, False, True]


def test_one_id_twice_in_one_call_is_one_task_if_the_content_is_equal(route: Route) -> None:
    tasks = route.db.submit_many(QUEUE, [1, 1], ids=["a", "a"])
    assert [task.id for task in tasks] == ["a", "a"]
    assert len(route.db.tasks()) == 1


def test_one_id_twice_in_one_call_with_two_contents_stores_nothing(route: Route) -> None:
    with refused(route, Conflict, task_id="a"):
        route.db.submit_many(QUEUE, [1, 2], ids=["a", "a"])


@pytest.mark.parametrize("delay", [30, timedelta(seconds=30), "30s", "0.5m", "29s999ms1ms"])
def test_a_delayed_task_reads_ready_and_is_granted_when_its_time_has_come(route: Route, delay: Any) -> None:
    ready(route, delay=delay)
    assert delay_ms(route) == 30_000
    route.clock.advance("29999ms")
    assert route.db.claim(QUEUE) is None
    route.clock.advance("1ms")
    assert taken(route).task_id == "t"


def test_a_delay_of_up_to_an_hour_ignores_steps_of_the_wall_clock(route: Route) -> None:
    ready(route, delay="1h")
    route.clock.step(7_200)
    assert route.db.claim(QUEUE) is None
    assert delay_ms(route) == 3_600_000
    route.clock.step(-86_400)
    route.clock.advance("3599999ms")
    assert route.db.claim(QUEUE) is None
    route.clock.advance("1ms")
    assert taken(route).task_id == "t"


def test_a_longer_delay_follows_the_wall_clock(route: Route) -> None:
    ready(route, delay="61m")
    route.clock.step(3_000)
    assert delay_ms(route) == 660_000
    route.clock.step(660 - 0.001)
    assert route.db.claim(QUEUE) is None
    route.clock.step(0.001)
    assert taken(route).task_id == "t"


def test_a_longer_delay_grows_when_the_wall_clock_is_put_back(route: Route) -> None:
    ready(route, delay="2h")
    route.clock.step(-3_600)
    route.clock.advance("2h")
    assert route.db.claim(QUEUE) is None
    route.clock.advance("1h")
    assert taken(route).task_id == "t"


def test_a_task_for_a_date_is_granted_at_that_date(route: Route) -> None:
    ready(route, at=date(route, 5))
    assert route.db.task("t").due_at == date(route, 5)
    route.clock.step(5 - 0.001)
    assert route.db.claim(QUEUE) is None
    route.clock.step(0.001)
    assert taken(route).task_id == "t"


def test_a_date_in_the_past_is_now(route: Route) -> None:
    ready(route, at=date(route, -5))
    assert route.db.task("t").due_at is None
    assert taken(route).task_id == "t"


def test_a_date_means_the_same_instant_in_every_zone(route: Route) -> None:
    instant = date(route, 5)
    ready(route, "utc", at=instant)
    ready(route, "tokyo", at=instant.astimezone(timezone(timedelta(hours=9))))
    assert route.db.task("utc").due_at == route.db.task("tokyo").due_at


def test_a_task_that_nobody_took_by_its_deadline_is_a_dead_letter(route: Route) -> None:
    ready(route, deadline=date(route, 30))
    route.clock.advance("29999ms")
    assert route.db.sweep() == 0
    route.clock.advance("1ms")
    assert route.db.claim(QUEUE) is None
    task = route.db.task("t")
    assert (task.state, task.reason, task.code) == (State.FAILED, "deadline", "RELET-DEADLINE")


def test_a_deadline_does_not_end_the_lease_of_who_took_it_in_time(route: Route) -> None:
    lease = held(route, ttl=60, deadline=date(route, 30))
    route.clock.advance(40)
    assert lease.renew() == 60
    lease.complete("in the end")
    assert route.db.result("t") == "in the end"
