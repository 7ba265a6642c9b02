"""Inputs bound to a handler's parameters: by name, converted by annotation; what does not fit fails for good."""

import dataclasses
from typing import Any, TypedDict

import msgspec
import pytest

import relet
from relet.worker.binding import Binding


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Size(msgspec.Struct):
    width: float
    unit: str = "m"


class Person(TypedDict):
    name: str
    age: int


class Model:
    """As a pydantic model answers, without pydantic."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def model_validate(cls, value):
        if not isinstance(value, dict) or "topic" not in value:
            raise ValueError("topic: field required")
        return cls(value["topic"])


def handle(app, db, function, payload):
    """The task of one input, after the handler had its turn."""
    handler = app.task("typed")(function)
    task = db.submit(handler.queue, payload)
    app.run_until_idle(db)
    return db.task(task.id)


def whole_int(run, n: int):
    return ["int", n]


def a_float(run, share: float):
    return [type(share).__name__, share]


def a_point(run, point: Point):
    assert isinstance(point, Point)
    return [point.x, point.y]


def a_size(run, size: Size):
    assert isinstance(size, Size)
    return [size.width, size.unit]


def a_person(run, person: Person):
    return person["name"]


def a_model(run, model: Model):
    assert isinstance(model, Model)
    return model.value


def points(run, points: list[Point]):
    return [point.x for point in points]


def maybe(run, n: int | None = 7):
    return n


def unannotated(run, value):
    return value


def anything(run, value: Any):
    return value


def no_input(run):
    return "ran"


def open_ended(run, topic: str, **others):
    return [topic, others]


def only_positional(run, payload: dict, /):
    return payload


def two(run, topic: str, n: int = 3):
    return [topic, n]


def only_positional_or_none(run, n: int | None = 3, /):
    return n


def only_positional_by_default(run, n: int = 3, /):
    return n


def one_default(run, n: int = 3):
    return n


def defaults_only(run, n: int = 3, m: int = 4):
    return [n, m]


def a_list_and_more(run, text: list, n: int = 3):
    return [text, n]


def a_point_and_more(run, point: Point, n: int = 3):
    return [point.x, n]


def unannotated_and_more(run, value, n: int = 3):
    return [value, n]


@pytest.mark.parametrize(
    ("function", "payload", "result"),
    [
        (two, {"topic": "grain", "n": 5}, ["grain", 5]), (two, {"topic": "grain"}, ["grain", 3]),
        (whole_int, {"n": 5}, ["int", 5]), (whole_int, 5, ["int", 5]), (a_float, 2, ["float", 2.0]),
        (a_point, {"point": {"x": 1, "y": 2}}, [1, 2]), (a_point, {"x": 1}, [1, 0]),
        (a_size, {"size": {"width": 2}}, [2.0, "m"]), (a_size, {"width": 2, "unit": "cm"}, [2.0, "cm"]),
        (a_person, {"person": {"name": "Ada", "age": 36}}, "Ada"), (a_person, {"name": "Ada", "age": 36}, "Ada"),
        (a_model, {"model": {"topic": "grain"}}, "grain"), (a_model, {"topic": "grain"}, "grain"),
        (points, [{"x": 1}, {"x": 2}], [1, 2]), (points, {"points": [{"x": 3}]}, [3]),
        (maybe, None, 7), (maybe, {}, 7), (maybe, {"n": None}, None), (maybe, 8, 8),
        (unannotated, {"free": [1]}, {"free": [1]}), (unannotated, "text", "text"), (unannotated, None, None),
        (anything, {"free": {"deep": None}}, {"free": {"deep": None}}), (anything, {"value": 1}, 1),
        (no_input, None, "ran"), (no_input, {}, "ran"),
        (open_ended, {"topic": "rye", "a": 1}, ["rye", {"a": 1}]), (open_ended, {"topic": "rye"}, ["rye", {}]),
        (only_positional, {"payload": 1}, {"payload": 1}), (only_positional, {"a": 1}, {"a": 1}),
        (only_positional_or_none, None, None), (only_positional_by_default, None, 3),
        # As they were fed before the parameter with a default was added, while tasks were waiting.
        (defaults_only, None, [3, 4]), (one_default, None, 3), (two, "grain", ["grain", 3]),
        (a_point_and_more, {"x": 1}, [1, 3]), (a_list_and_more, ["x"], [["x"], 3]),
    ],
)  # fmt: skip
def test_an_input_meets_the_parameters(app, db, function, payload, result):
    task = handle(app, db, function, payload)
    assert (task.state, task.error) == ("done", None)
    assert task.result == result


@pytest.mark.parametrize(
    ("function", "payload", "named"),
    [
        (two, {}, "topic"), (two, {"topic": "grain", "m": 1}, "topic"), (two, {"topic": 7}, "topic"),
        (two, {"topic": "grain", "n": "5"}, "n"), (two, None, "topic"),
        (whole_int, "5", "n"), (whole_int, True, "n"), (whole_int, {"n": 1.5}, "n"), (whole_int, None, "n"),
        (a_float, "much", "share"), (a_point, {"point": {"y": 2}}, "point"), (a_point, 5, "point"),
        (a_size, {"size": {"width": "wide"}}, "size"), (a_person, {"name": "Ada"}, "person"),
        (a_model, {"model": {}}, "model"), (a_model, 5, "model"), (points, [{"x": "1"}], "points"),
        (no_input, 5, "no input"), (no_input, {"a": 1}, "no input"), (open_ended, {"a": 1}, "topic"),
        (only_positional, [1], "payload"),
        (a_point_and_more, {"x": 1, "n": 4}, "point"), (unannotated_and_more, {"valeu": 1}, "'valeu' is unknown"),
        (a_list_and_more, "x", "text"),
    ],
)  # fmt: skip
def test_an_input_that_does_not_fit_fails_for_good_and_says_what_is_wanted(app, db, function, payload, named):
    task = handle(app, db, function, payload)
    assert (task.state, task.code, task.reason, task.attempt) == ("failed", "RELET-INPUT", "permanent", 2)
    assert named in task.error
    assert task.error.startswith("typed: ")


def test_a_handler_never_starts_with_an_input_that_does_not_fit(app, db):
    ran = []

    def touchy(run, n: int):
        ran.append(n)

    assert handle(app, db, touchy, "five").state == "failed"
    assert ran == []


def test_a_worker_goes_on_after_an_input_that_does_not_fit(app, db):
    handler = app.task("typed")(whole_int)
    db.submit(handler.queue, "five", priority=1)
    good = db.submit(handler.queue, 5)
    assert app.run_until_idle(db) == 2
    assert db.result(good.id) == ["int", 5]


def test_async_handlers_are_bound_by_the_same_rules(app, db):
    async def typed(run: relet.AsyncRun, point: Point, n: int = 1):
        return [point.x, n]

    handler = app.task("typed")(typed)
    good, bad = db.submit(handler.queue, {"point": {"x": 4}}), db.submit(handler.queue, {"point": 4})
    app.run_until_idle(db)
    assert db.result(good.id) == [4, 1]
    assert db.task(bad.id).code == "RELET-INPUT"


def test_annotations_written_as_text_are_read(app, db):
    def typed(run: "relet.Run", point: "Point"):
        return point.x

    assert handle(app, db, typed, {"point": {"x": 4}}).result == 4


def test_the_first_parameter_is_a_run_by_its_name_or_by_its_annotation():
    def by_name(run, n):
        """Named run."""

    def by_type(it: relet.Run, n):
        """Annotated."""

    def by_text(it: "relet.AsyncRun", n):
        """Annotated as text."""

    def neither(n, run):
        """Not the first."""

    assert [Binding(one, "k").takes_run for one in (by_name, by_type, by_text, neither)] == [True, True, True, False]


def test_an_annotation_that_cannot_be_read_fails_the_task_and_says_so(app, db):
    def typed(run, n: "Nowhere"):  # noqa: F821 - the point of the test
        return n

    handler = app.task("typed", retry=relet.RetryPolicy(max_attempts=1))(typed)
    task = db.submit(handler.queue, 1)
    app.run_until_idle(db)
    assert "annotations cannot be read" in db.task(task.id).error
