"""`handler.submit`: the function's own arguments become the input, options of submit remain options."""

import asyncio
import dataclasses
from datetime import timedelta

import pytest

import relet


@dataclasses.dataclass
class Place:
    city: str


@pytest.fixture
def report(app):
    @app.task("report", queue="reports")
    def report(run: relet.Run, topic: str, pages: int = 1, place: Place | None = None):
        return [topic, pages, place]

    return report


def test_arguments_become_the_input_by_name(db, report):
    assert report.submit(db, topic="grain", pages=2).input == {"topic": "grain", "pages": 2}
    assert report.submit(db, "grain", 2).input == {"topic": "grain", "pages": 2}
    assert report.submit(db, "grain").input == {"topic": "grain"}


def test_values_are_kept_as_json_and_come_back_as_their_type(app, db, report):
    task = report.submit(db, "grain", place=Place("Oslo"))
    assert task.input == {"topic": "grain", "place": {"city": "Oslo"}}
    app.run_until_idle(db)
    assert db.result(task.id) == ["grain", 1, {"city": "Oslo"}]


def test_options_of_submit_are_passed_on(db, report):
    task = report.submit(
        db, topic="grain", id="r-1", priority=5, delay=timedelta(minutes=1), labels={"team": "a"}, max_attempts=1
    )
    assert (task.id, task.priority, task.labels, task.kind) == ("r-1", 5, {"team": "a"}, "report")
    assert task.due_at is not None


def test_submitting_twice_by_id_makes_one_task(db, report):
    assert report.submit(db, topic="grain", id="r-1").created
    assert not report.submit(db, topic="grain", id="r-1").created
    with pytest.raises(relet.Conflict):
        report.submit(db, topic="rye", id="r-1")


@pytest.mark.parametrize(
    ("args", "named", "problem"),
    [
        ((), {}, "topic: report needs it"), ((), {"pages": 2}, "topic: report needs it"),
        (("grain",), {"topic": "rye"}, "topic: was given twice"),
        (("grain", 1, None, 9), {}, "takes 3 positional arguments, 4 were given"),
        (("grain",), {"priority": "high"}, "priority: "), (("grain", float("nan")), {}, "pages"),
        (("grain",), {"colour": "red"}, "colour: is no option of submit, and no parameter of report"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused_and_nothing_is_stored(db, report, args, named, problem):
    with pytest.raises(relet.Invalid, match=problem):
        report.submit(db, *args, **named)
    assert db.tasks() == []


def test_a_parameter_comes_before_an_option_of_the_same_name(app, db):
    @app.task("wait")
    def wait(run, delay: int):
        return delay

    task = wait.submit(db, delay=90)
    assert (task.input, task.due_at) == ({"delay": 90}, None)
    app.run_until_idle(db)
    assert db.result(task.id) == 90


def test_a_handler_of_any_argument_takes_those_that_are_no_options(app, db):
    @app.task("free")
    def free(run, topic: str, **others):
        return [topic, others]

    task = free.submit(db, topic="grain", colour="red", priority=3)
    assert (task.input, task.priority) == ({"topic": "grain", "colour": "red"}, 3)
    app.run_until_idle(db)
    assert db.result(task.id) == ["grain", {"colour": "red"}]


def test_a_positional_only_parameter_is_the_whole_input(app, db):
    @app.task("whole")
    def whole(run, payload: list, /):
        return payload

    task = whole.submit(db, [1, 2])
    assert task.input == [1, 2]
    app.run_until_idle(db)
    assert db.result(task.id) == [1, 2]


def test_a_handler_without_parameters_is_submitted_without_input(app, db):
    @app.task("tick")
    def tick(run):
        return "tock"

    task = tick.submit(db)
    assert task.input is None
    app.run_until_idle(db)
    assert db.result(task.id) == "tock"


def test_with_an_awaiting_client_submit_is_awaited(url, app, report):
    async def main():
        async with relet.connect_async(url) as adb:
            task = await report.submit(adb, topic="grain", id="r-1", priority=2)
            again = await report.submit(adb, topic="grain", id="r-1")
            async with app.worker(adb):
                result = await adb.result("r-1", wait=10)
        return task, again, result

    task, again, result = asyncio.run(main())
    assert (task.id, task.kind, task.priority, task.created, again.created) == ("r-1", "report", 2, True, False)
    assert result == ["grain", 1, None]


def test_with_an_awaiting_client_arguments_that_do_not_fit_are_refused_at_the_call(url, report):
    async def main():
        async with relet.connect_async(url) as adb:
            with pytest.raises(relet.Invalid, match="topic: report needs it"):
                report.submit(adb, pages=2)
            return await adb.tasks()

    assert asyncio.run(main()) == []
