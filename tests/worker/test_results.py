"""Results: kept as JSON; one that has no JSON form fails its task for good, says why, and the worker lives."""

import dataclasses
import datetime as dt
import enum
import gc
import threading
import weakref

import msgspec
import pytest

import relet
from relet.core import limits
from tests.waiting import eventually


class Colour(enum.StrEnum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int


class Size(msgspec.Struct):
    width: int


class Surprise:
    def model_dump(self, mode):
        raise RuntimeError("not today")


LOOP = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (None, None), (Point(1), {"x": 1}), (Size(2), {"width": 2}), (Colour.RED, "red"), ((1, [2.5]), [1, [2.5]]),
        ({"at": dt.date(2026, 1, 2)}, {"at": "2026-01-02"}),
    ],
)  # fmt: skip
def test_a_result_is_kept_as_json(db, app, value, kept):
    app.task("make")(lambda run: value)
    task = db.submit("make")
    app.run_until_idle(db)
    assert db.task(task.id).state == "done"
    assert db.result(task.id) == kept


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (object(), "result"), ({"deep": [{1, 2}]}, "result.deep[0]"), (b"bytes", "result"),
        ({"share": [0.5, float("nan")]}, "result.share[1]"), (float("inf"), "result"), ("a\x00b", "result"),
        ("\ud800", "result"), ({1: "a"}, "result"), (1 << 70, "result"), (LOOP, "nested deeper"),
        ("x" * (limits.PAYLOAD_BYTES_MAX + 1), "result"), (threading.Lock(), "result"),
    ],
)  # fmt: skip
def test_pl_05_a_result_without_a_json_form_fails_the_task_and_the_worker_lives(db, app, value, path):
    app.task("make")(lambda run, good: "fine" if good else value)
    bad = db.submit("make", {"good": False}, priority=1)
    good = db.submit("make", {"good": True})
    with app.worker(db):
        assert db.result(good.id, wait=10) == "fine"
    task = db.task(bad.id)
    assert (task.state, task.code, task.reason, task.failures) == ("failed", "RELET-RESULT", "permanent", 1)
    assert path in task.error


def test_pl_05_whoever_waits_for_the_result_is_told_at_once(db, app):
    app.task("make")(lambda run: object())
    task = db.submit("make")
    with app.worker(db), pytest.raises(relet.TaskFailed) as failed:
        db.result(task.id, wait=10)
    assert failed.value.detail["error_code"] == "RELET-RESULT"


def test_pl_05_a_result_whose_reading_raises_fails_the_attempt_and_the_worker_lives(db, app):
    app.task("make", retry=relet.RetryPolicy(max_attempts=1))(lambda run, good: 1 if good else Surprise())
    bad = db.submit("make", {"good": False}, priority=1)
    good = db.submit("make", {"good": True})
    assert app.run_until_idle(db) == 2
    assert db.result(good.id) == 1
    assert (db.task(bad.id).state, db.task(bad.id).error) == ("failed", "RuntimeError: not today")


def test_pl_05_an_async_result_without_a_json_form_fails_the_task_too(db, app):
    @app.task("make")
    async def make(run):
        return {"set": {1}}

    task = make.submit(db)
    app.run_until_idle(db)
    assert (db.task(task.id).state, db.task(task.id).code) == ("failed", "RELET-RESULT")


def test_a_handler_may_end_its_lease_itself(db, app):
    @app.task("make")
    def make(run, how: str):
        if how == "complete":
            run.lease.complete("by hand")
        elif how == "fail":
            run.lease.fail("by hand", retry=False, code="MINE")
        else:
            run.lease.release("1h")
        return "ignored"

    done, failed, released = (make.submit(db, how) for how in ("complete", "fail", "release"))
    assert app.run_until_idle(db) == 3
    assert db.result(done.id) == "by hand"
    assert (db.task(failed.id).state, db.task(failed.id).code) == ("failed", "MINE")
    assert (db.task(released.id).state, db.task(released.id).attempt) == ("ready", 1)
    assert db.rejections() == []


@pytest.mark.parametrize("style", ["def", "async def"])
def test_what_was_kept_for_a_task_is_gone_once_it_is_done_and_not_when_somebody_collects(db, app, style):
    runs = []

    def blocking(run):
        runs.append(weakref.ref(run))

    async def awaiting(run):
        runs.append(weakref.ref(run))

    app.task("work")(blocking if style == "def" else awaiting)
    db.submit_many("work", [None] * 5)
    gc.disable()
    try:
        app.run_until_idle(db)
        eventually(lambda: [run() for run in runs] == [None] * 5)  # a thread may be about to end
    finally:
        gc.enable()
