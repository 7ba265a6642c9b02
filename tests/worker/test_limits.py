"""Limits of time: a timeout is a failure, a deadline the end, a cap on holding a loss."""

import asyncio
import contextlib
import datetime as dt
import time

import relet
from relet.worker import worker as worker_module
from tests.waiting import Gate, eventually

AT_ONCE = relet.RetryPolicy(base=0)


def soon(db, seconds):
    """A date by the store's clock, which stands still: only the worker's own waiting takes time."""
    return dt.datetime.fromtimestamp(db.clock.wall_ms() / 1_000 + seconds, dt.UTC)


def rounds(run):
    """Work in short pieces, with a relet call after each."""
    while True:
        time.sleep(0.005)
        run.check()


def test_cs_02_an_async_handler_past_its_timeout_is_cancelled_and_tried_again(db, app):
    seen = []

    @app.task("slow", timeout="50ms", retry=AT_ONCE)
    async def slow(run):
        if run.attempt == 2:
            return "in time"
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append(run.stopped)
            raise

    task = slow.submit(db)
    assert app.run_until_idle(db) == 2
    assert db.result(task.id) == "in time"
    assert [cause.code for cause in seen] == ["RELET-TIMEOUT"]
    (retried,) = [event for event in db.history(task.id) if event.kind == "retried"]
    assert retried.detail["code"] == "RELET-TIMEOUT"
    assert (db.task(task.id).failures, db.task(task.id).losses) == (1, 0)


def test_cs_02_a_blocking_handler_past_its_timeout_is_stopped_at_its_next_call(db, app):
    @app.task("slow", timeout="50ms", retry=relet.RetryPolicy(max_attempts=2, base=0))
    def slow(run):
        rounds(run)

    task = slow.submit(db)
    assert app.run_until_idle(db) == 2
    dead = db.task(task.id)
    assert (dead.state, dead.reason, dead.code) == ("failed", "attempts", "RELET-TIMEOUT")
    assert (dead.failures, dead.losses) == (2, 0)


def test_a_result_that_comes_after_the_timeout_does_not_count(db, app):
    @app.task("slow", timeout="50ms", retry=relet.RetryPolicy(max_attempts=1))
    def slow(run):
        eventually(lambda: run.stopped)
        return "late"

    task = slow.submit(db)
    app.run_until_idle(db)
    assert (db.task(task.id).state, db.task(task.id).code, db.task(task.id).result) == (
        "failed",
        "RELET-TIMEOUT",
        None,
    )


def test_the_attempt_of_a_handler_that_never_listens_ends_after_its_timeout_all_the_same(
    db, app, monkeypatch, caplog
):
    monkeypatch.setattr(worker_module, "STOP_WAIT_S", 0.1)
    gate, seen = Gate(), []

    @app.task("deaf", timeout="50ms", retry=relet.RetryPolicy(max_attempts=1))
    def deaf(run):
        gate.pass_through()
        with contextlib.suppress(relet.LeaseStopped):
            run.save("too late")
            seen.append("saved")

    task = deaf.submit(db)
    with app.worker(db):
        eventually(lambda: db.task(task.id).state == "failed")
        assert db.task(task.id).code == "RELET-TIMEOUT"
        gate.set()
    assert seen == []
    assert [event.kind for event in db.history(task.id)] == ["submitted", "claimed", "failed"]
    (said,) = [record for record in caplog.records if "does not stop" in record.getMessage()]
    assert said.reason == "RELET-TIMEOUT", "its lease is not what was over"


def test_the_timeout_of_a_submit_comes_before_that_of_its_handler(db, app):
    app.task("slow", timeout="1h", retry=relet.RetryPolicy(max_attempts=1))(rounds)
    task = db.submit("slow", timeout="50ms")
    app.run_until_idle(db)
    assert db.task(task.id).code == "RELET-TIMEOUT"


def test_a_deadline_that_comes_while_it_runs_ends_the_task_for_good(relet_db, app):
    app.task("slow", retry=AT_ONCE)(rounds)
    task = relet_db.submit("slow", deadline=soon(relet_db, 0.1))
    assert app.run_until_idle(relet_db) == 1
    dead = relet_db.task(task.id)
    assert (dead.state, dead.code, dead.reason) == ("failed", "RELET-DEADLINE", "permanent")


def test_a_task_past_its_deadline_never_starts(relet_db, app):
    app.task("slow")(rounds)
    task = relet_db.submit("slow", deadline=soon(relet_db, -1))
    assert app.run_until_idle(relet_db) == 0
    assert (relet_db.task(task.id).state, relet_db.task(task.id).code) == ("failed", "RELET-DEADLINE")


def test_the_nearer_of_timeout_and_deadline_decides(relet_db, app):
    app.task("slow", retry=relet.RetryPolicy(max_attempts=1))(rounds)
    by_timeout = relet_db.submit("slow", timeout="50ms", deadline=soon(relet_db, 60))
    by_deadline = relet_db.submit("slow", timeout="60s", deadline=soon(relet_db, 0.1))
    app.run_until_idle(relet_db, concurrency=2)
    assert relet_db.task(by_timeout.id).code == "RELET-TIMEOUT"
    assert relet_db.task(by_deadline.id).code == "RELET-DEADLINE"


def test_rd_03_however_attempts_end_badly_one_limit_counts_them_and_each_leaves_its_own_code(relet_db, app):
    @app.task("work", timeout="50ms", retry=relet.RetryPolicy(base="10s", cap="10s"))
    def work(run):
        if run.attempt == 1:
            raise relet.Temporary("busy", code="BUSY")
        rounds(run)

    task = work.submit(relet_db, max_attempts=3)
    for _ in range(2):
        assert app.run_until_idle(relet_db) == 1
        relet_db.clock.advance("12s")
    assert relet_db.claim("work").attempt == 3
    relet_db.clock.advance("61s")
    relet_db.sweep()
    dead = relet_db.task(task.id)
    assert (dead.state, dead.reason, dead.failures, dead.losses) == ("failed", "attempts", 2, 1)
    ends = [(str(event.kind), event.detail.get("code")) for event in relet_db.history(task.id)][2::2]
    assert ends == [("retried", "BUSY"), ("retried", "RELET-TIMEOUT"), ("failed", None)]
    assert dead.code == "RELET-LAPSED"


def test_rd_03_max_hold_ends_a_lease_however_well_it_is_renewed_and_counts_as_a_loss(relet_db, app):
    stopped = []

    @app.task("long", ttl="30s", max_hold="60s", retry=relet.RetryPolicy(max_losses=1))
    def long(run):
        try:
            while True:
                relet_db.clock.advance("5s")
                # The keeper has its turn: the lease is renewed, or known to be capped.
                eventually(
                    lambda: run.lease.status == "lost" or run.lease.expires_in > 24 or run.lease.belief.trust.capped
                )
                run.check()
        except relet.LeaseStopped as told:
            stopped.append((told.cause.reason, relet_db.clock.mono_ms() - before_ms))
            raise

    task = relet_db.submit("long")
    before_ms = relet_db.clock.mono_ms()
    with app.worker(relet_db):
        eventually(lambda: stopped)
        relet_db.clock.advance("5s")
        eventually(lambda: relet_db.task(task.id).state == "failed")
    assert stopped == [("capped", 60_000)]
    assert (relet_db.task(task.id).reason, relet_db.task(task.id).losses) == ("losses", 1)
