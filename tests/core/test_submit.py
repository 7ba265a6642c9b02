"""submit: all or none, by ids that stand for one content."""

import pytest

from relet.core.errors import Conflict
from relet.core.model import Cause, State
from relet.core.rules.submit import NewTask, Submit
from tests.core.talk import RAW

WALL_MS = 1_800_000_000_000


def test_a_new_task_is_ready_and_says_that_it_was_made(scene):
    (task,) = scene.submit("t", content={"n": 1}, labels={"team": "a"}, priority=5, exclusive="key")
    assert (task.state, task.created, task.attempt, task.token) == (State.READY, True, 1, None)
    assert (task.input, task.labels, task.priority, task.exclusive) == ({"n": 1}, {"team": "a"}, 5, "key")
    assert scene.causes() == [Cause.SUBMITTED]


def test_the_same_id_and_content_is_the_task_that_is_there(scene):
    scene.submit("t")
    before = scene.state()
    (again,) = scene.submit("t", priority=9, delay_ms=5)
    assert (again.created, again.priority) == (False, 0)
    assert scene.state() == before


def test_it_is_the_same_task_when_it_is_finished_too(scene):
    scene.complete(scene.held())
    (again,) = scene.submit("t")
    assert (again.created, again.state) == (False, State.DONE)


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ({"queue": "r"}, "in queue 'q' with kind 'k'"),
        ({"kind": "l"}, "in queue 'q' with kind 'k'"),
        ({"content": 2}, "with other input"),
    ],
    ids=["queue", "kind", "input"],
)
def test_the_same_id_with_other_content_stores_nothing_at_all(scene, other, problem):
    scene.submit("t")
    before = scene.state()
    refused = scene.submit("new", "t", **other)
    assert isinstance(refused, Conflict)
    assert problem in str(refused)
    assert refused.detail == {"field": "id", "task_id": "t"}
    assert scene.state() == before


def test_an_id_twice_in_one_call_is_one_task_when_its_input_is_the_same(scene):
    first, second = scene.submit("t", "t")
    assert first == second
    assert scene.causes() == [Cause.SUBMITTED]


def test_an_id_twice_in_one_call_with_different_input_is_a_conflict(scene):
    twice = [NewTask(id="t", input=RAW), NewTask(id="t", input=type(RAW)(b"2"))]
    refused = scene.ask(Submit(queue="q", kind="k", tasks=twice))
    assert isinstance(refused, Conflict)
    assert "twice in one call with different input" in str(refused)
    assert not any(scene.state().values())


@pytest.mark.parametrize(
    ("options", "due_in_ms"),
    [
        ({}, None),
        ({"delay_ms": 5_000}, 5_000),
        ({"delay_ms": 7_200_000}, 7_200_000),
        ({"at_wall_ms": WALL_MS + 60_000}, 60_000),
        ({"at_wall_ms": WALL_MS}, None),
        ({"at_wall_ms": WALL_MS - 1}, None),
    ],
    ids=["at-once", "delay", "long-delay", "at", "at-now", "at-past"],
)
def test_a_task_may_wait_for_its_time(scene, options, due_in_ms):
    (task,) = scene.submit("t", **options)
    assert task.state is State.READY
    if due_in_ms is None:
        assert task.due_at is None
        assert scene.claim()
        return
    assert task.due_at.timestamp() * 1_000 == WALL_MS + due_in_ms
    scene.pass_ms(due_in_ms - 1)
    assert scene.claim() == []
    scene.pass_ms(1)
    assert scene.claim()
