"""Cancel: delivered into running work; the task is cancelled only when its handler has stopped, and it is no loss."""

import asyncio
import time

import pytest

import relet
from tests.waiting import Gate, eventually


def check_called_off(db, task_id):
    """It was cancelled, by its holder giving way, and cost no attempt."""
    task = db.task(task_id)
    assert (task.state, task.reason, task.attempt, task.failures, task.losses) == ("cancelled", "enough", 1, 0, 0)
    kinds = [event.kind for event in db.history(task_id)]
    assert kinds == ["submitted", "claimed", "cancel_requested", "cancelled"]


def test_cs_01_an_async_handler_is_cancelled_and_the_task_only_afterwards(db, app):
    gate, seen = Gate(), []

    @app.task("work", ttl="1s")
    async def work(run):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append(run.stopped.reason)
            raise
        finally:
            await asyncio.to_thread(gate.pass_through)

    task = work.submit(db)
    with app.worker(db):
        eventually(lambda: db.task(task.id).live)
        db.cancel(task.id, "enough")
        eventually(lambda: seen)
        assert (db.task(task.id).state, db.task(task.id).cancel_requested) == ("leased", True)
        gate.set()
        eventually(lambda: db.task(task.id).state == "cancelled")
    assert seen == ["cancelled"]
    check_called_off(db, task.id)


def test_cs_01_a_blocking_handler_is_told_at_its_next_call_and_the_task_cancelled_afterwards(db, app):
    seen = []

    @app.task("work", ttl="1s")
    def work(run):
        try:
            while True:
                time.sleep(0.005)
                run.check()
        except relet.LeaseStopped as stopped:
            seen.append((stopped.cause.reason, db.task(run.task_id).state))
            raise

    task = work.submit(db)
    with app.worker(db):
        eventually(lambda: db.task(task.id).live)
        db.cancel(task.id, "enough")
        eventually(lambda: db.task(task.id).state == "cancelled")
    assert seen == [("cancelled", "leased")]
    check_called_off(db, task.id)


def test_a_write_after_a_cancel_is_refused_before_any_heartbeat_has_told(relet_db, app):
    """The clock stands still, so no heartbeat is due: the refused write itself is what tells."""
    gate, seen = Gate(), []

    @app.task("work")
    def work(run):
        gate.pass_through()
        try:
            run.save("after the cancel")
        except relet.LeaseStopped as stopped:
            seen.append(stopped.cause.reason)
            raise

    task = work.submit(relet_db)
    with app.worker(relet_db):
        eventually(lambda: relet_db.task(task.id).live)
        relet_db.cancel(task.id, "enough")
        gate.set()
        eventually(lambda: relet_db.task(task.id).state == "cancelled")
    assert seen == ["cancelled"]
    check_called_off(relet_db, task.id)


@pytest.mark.parametrize("style", ["def", "async def"])
@pytest.mark.parametrize("ending", ["returns", "raises"])
def test_a_handler_that_ends_before_it_hears_of_the_cancel_gives_way_at_once(relet_db, app, style, ending):
    gate = Gate()

    def end():
        gate.pass_through()
        if ending == "raises":
            raise ValueError("of its own")
        return "a result"

    if style == "def":
        app.task("work")(lambda run: end())
    else:

        @app.task("work")
        async def work(run):
            return await asyncio.to_thread(end)

    task = relet_db.submit("work")
    with app.worker(relet_db):
        eventually(lambda: relet_db.task(task.id).live)
        relet_db.cancel(task.id, "enough")
        gate.set()
        eventually(lambda: relet_db.task(task.id).state == "cancelled")
    check_called_off(relet_db, task.id)
    assert relet_db.task(task.id).result is None


def test_a_handler_that_swallows_the_cancel_is_cancelled_when_it_ends(db, app):
    @app.task("work", ttl="1s")
    async def work(run):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "all the same"

    task = work.submit(db)
    with app.worker(db):
        eventually(lambda: db.task(task.id).live)
        db.cancel(task.id, "enough")
        eventually(lambda: db.task(task.id).state == "cancelled")
    check_called_off(db, task.id)
    assert db.task(task.id).result is None


def test_a_task_cancelled_before_it_started_never_runs(db, app):
    ran = []
    app.task("work")(lambda run: ran.append(1))
    task = db.submit("work")
    db.cancel(task.id, "enough")
    assert app.run_until_idle(db) == 0
    assert (db.task(task.id).state, ran) == ("cancelled", [])


def test_a_worker_goes_on_after_a_cancel(db, app):
    @app.task("work", ttl="1s")
    def work(run, long: bool):
        while long:
            time.sleep(0.005)
            run.check()

    first, second = work.submit(db, True, priority=1), work.submit(db, False)
    with app.worker(db):
        eventually(lambda: db.task(first.id).live)
        db.cancel(first.id, "enough")
        eventually(lambda: db.task(second.id).state == "done")
    assert db.task(first.id).state == "cancelled"


def test_cs_02_cancel_timeout_and_shutdown_leave_three_different_traces(db, app):
    @app.task("work", ttl="1s", retry=relet.RetryPolicy(max_attempts=1))
    async def work(run):
        await asyncio.sleep(30)

    cancelled, overdue, released = work.submit(db), work.submit(db, timeout="50ms"), work.submit(db)
    with app.worker(db, concurrency=3, grace=0):
        eventually(lambda: db.task(overdue.id).state == "failed" and db.task(released.id).live)
        db.cancel(cancelled.id, "enough")
        eventually(lambda: db.task(cancelled.id).state == "cancelled")
    last = [db.history(task.id)[-1] for task in (cancelled, overdue, released)]
    assert [(event.kind, event.state) for event in last] == [
        ("cancelled", "cancelled"), ("failed", "failed"), ("released", "ready"),
    ]  # fmt: skip
    assert last[1].detail["code"] == "RELET-TIMEOUT"
    assert db.task(released.id).attempt == 1
