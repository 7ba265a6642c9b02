"""Tries of a step: made again here, under the lease, as its policy says; bounded in time."""

import asyncio
import threading

import pytest

import relet
from tests.durable.styles import Calls
from tests.waiting import Gate

QUICK = relet.RetryPolicy(max_attempts=3, base="1ms", cap="1ms")


def test_a_step_that_fails_is_tried_again_under_the_same_lease(db, handle, settle):
    step = Calls(OSError("one"), OSError("two"), "third")

    async def body(run):
        return await run.step("fetch", step, retry=QUICK)

    task = handle(body).submit(db)
    done = settle(task)
    assert (done.result, done.attempt, len(step)) == ("third", 1, 3)


def test_after_its_last_try_the_step_raises_what_the_last_one_did(db, handle, settle):
    step, said = Calls(OSError("one"), OSError("two"), OSError("three")), []

    async def body(run):
        with pytest.raises(OSError, match="three"):
            await run.step("fetch", step, retry=QUICK)
        said.append(True)

    assert settle(handle(body).submit(db)).state == "done"
    assert (len(step), said) == (3, [True])


def test_without_a_policy_a_step_is_tried_once(db, handle, settle):
    step = Calls(OSError("one"))

    async def body(run):
        with pytest.raises(OSError, match="one"):
            await run.step("fetch", step)

    assert settle(handle(body).submit(db)).state == "done"
    assert len(step) == 1


@pytest.mark.parametrize(
    "verdict", [relet.Permanent("never"), relet.Invalid("not so", field="x")], ids=["Permanent", "Invalid"]
)
def test_a_permanent_failure_and_a_refusal_of_relet_are_not_tried_again(db, handle, settle, verdict):
    step = Calls(verdict)

    async def body(run):
        with pytest.raises(type(verdict)):
            await run.step("fetch", step, retry=QUICK)

    assert settle(handle(body).submit(db)).state == "done"
    assert len(step) == 1


def test_a_permanent_failure_within_a_step_fails_the_task_for_good(db, handle, settle):
    async def body(run):
        await run.step("fetch", Calls(relet.Permanent("gone", code="GONE")), retry=QUICK)

    failed = settle(handle(body).submit(db))
    assert (failed.state, failed.code, failed.error) == ("failed", "GONE", "gone")


def test_a_temporary_failure_says_how_long_to_wait(db, handle, settle):
    slow = relet.RetryPolicy(max_attempts=2, base="1h", cap="1h")

    async def body(run):
        return await run.step("fetch", Calls(relet.Temporary("busy", delay="1ms"), "then"), retry=slow)

    assert settle(handle(body).submit(db)).result == "then"


def test_a_temporary_failure_beyond_the_tries_delays_the_task(db, handle, go):
    async def body(run):
        await run.step("fetch", Calls(relet.Temporary("busy", delay="2h")))

    task = handle(body).submit(db)
    go()
    found = db.task(task.id)
    assert (found.state, found.error) == ("ready", "busy")
    assert (found.due_at - found.updated_at).total_seconds() >= 7_200


def test_a_blocking_step_that_takes_too_long_is_left_behind(db, app, settle):
    left, tries = Gate(), []

    def hang():
        tries.append(relet.current_run() is not None)
        if len(tries) == 1:
            left.pass_through()
        return "second"

    @app.task("work")
    def work(run):
        return run.step("fetch", hang, timeout=0.5, retry=QUICK)

    assert settle(work.submit(db)).result == "second"
    left.set()
    assert tries == [True, True]


def test_an_awaiting_step_that_takes_too_long_is_cancelled(db, app, settle):
    cancelled = []

    async def hang():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    @app.task("work")
    async def work(run):
        with pytest.raises(TimeoutError):
            await run.step("fetch", hang, timeout=0.02, retry=QUICK)

    assert settle(work.submit(db)).state == "done"
    assert cancelled == [True] * 3


def test_a_plain_function_of_an_async_handler_is_left_behind_too(db, app, settle):
    left = Gate()

    @app.task("work")
    async def work(run):
        with pytest.raises(TimeoutError):
            await run.step("fetch", left.pass_through, timeout=0.02)

    assert settle(work.submit(db)).state == "done"
    left.set()


def test_the_error_of_a_blocking_step_under_a_timeout_is_its_own(db, app, settle):
    @app.task("work")
    def work(run):
        with pytest.raises(OSError, match="its own"):
            run.step("fetch", Calls(OSError("its own")), timeout=60)
        return run.step("thread", lambda: threading.current_thread().name, timeout=60)

    assert settle(work.submit(db)).result == "relet-timed"


def test_the_cost_of_all_tries_is_kept_and_that_of_a_step_under_a_timeout_too(db, handle, settle):
    step = Calls(OSError("one"), "second")

    def fetch():
        relet.current_run().spent(1.5)
        return step()

    async def body(run):
        await run.step("fetch", fetch, retry=QUICK, timeout=60)

    task = handle(body).submit(db)
    assert settle(task).state == "done"
    assert [one.cost for one in db.steps(task.id)] == [3.0]


def test_a_lease_that_is_lost_between_two_tries_ends_the_tries(db, handle, go):
    def lose():
        db.clock.advance("61s")
        raise OSError("after the loss")

    step = Calls(lose, "by the next holder")

    async def body(run):
        return await run.step("fetch", step, retry=relet.RetryPolicy(max_attempts=3, base="1m", cap="1m"))

    task = handle(body).submit(db)
    go()
    assert (db.result(task.id), len(step)) == ("by the next holder", 2)
    assert db.steps(task.id)[0].token == db.task(task.id).token
    assert [str(event.kind) for event in db.history(task.id)].count("claimed") == 2
