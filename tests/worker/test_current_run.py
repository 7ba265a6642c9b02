"""`current_run` and `LogContext`: which task the code that runs here works for."""

import asyncio
import logging
import threading

import pytest

import relet
from tests.waiting import Gate


def test_outside_of_a_handler_there_is_no_current_run():
    assert relet.current_run() is None


def test_a_blocking_handler_finds_its_run(db, app):
    seen = []

    @app.task("work")
    def work(run):
        seen.append(relet.current_run() is run)

    work.submit(db)
    app.run_until_idle(db)
    assert seen == [True]
    assert relet.current_run() is None


def test_an_async_handler_and_its_threads_find_its_run(db, app):
    seen = []

    @app.task("work")
    async def work(run):
        seen.append(relet.current_run() is run)
        seen.append(await asyncio.to_thread(relet.current_run) is run)
        async with asyncio.TaskGroup() as group:
            group.create_task(inner(run))

    async def inner(run):
        seen.append(relet.current_run() is run)

    work.submit(db)
    app.run_until_idle(db)
    assert seen == [True] * 3


@pytest.mark.parametrize("style", ["def", "async def"])
def test_handlers_that_run_at_once_find_their_own(db, app, style):
    both = threading.Barrier(2, timeout=15)
    seen = {}

    def look(run):
        both.wait()
        seen[run.task_id] = relet.current_run().task_id

    @app.task("awaiting")
    async def awaiting(run):
        await asyncio.to_thread(look, run)

    handler = app.task("blocking")(look) if style == "def" else awaiting
    ids = {handler.submit(db).id for _ in range(2)}
    app.run_until_idle(db, concurrency=2)
    assert seen == {task_id: task_id for task_id in ids}


def test_a_run_verb_in_a_thread_of_an_async_handler_goes_through_its_lease(db, app):
    @app.task("work")
    async def work(run):
        await asyncio.to_thread(lambda: relet.current_run().lease.save("from a thread"))
        return await run.load()

    task = work.submit(db)
    app.run_until_idle(db)
    assert db.result(task.id) == "from a thread"


def test_log_records_name_task_token_attempt_and_holder(db, app):
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    handler.addFilter(relet.LogContext())
    log = logging.getLogger("tests.context")
    log.addHandler(handler)

    @app.task("work")
    def work(run):
        log.warning("inside")

    task = work.submit(db)
    try:
        log.warning("outside")
        app.run_until_idle(db)
    finally:
        log.removeHandler(handler)
    outside, inside = records
    assert (outside.task, outside.token, outside.attempt, outside.holder) == ("-", "-", "-", "-")
    claimed = db.history(task.id)[1]
    assert (inside.task, inside.token, inside.attempt, inside.holder) == (task.id, claimed.token, 1, claimed.holder)


def test_a_gate_of_the_tests_fails_when_nobody_opens_it():
    with pytest.raises(AssertionError):
        Gate().pass_through(within=0.01)
