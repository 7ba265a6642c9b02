"""A worker that is asked to end: handlers go on for the grace, then they are stopped and their leases released."""

import asyncio
import contextlib

import pytest

import relet
from relet.core.rules.claim import Claim
from relet.worker import worker as worker_module
from tests.waiting import Gate, eventually


def kinds(db, task):
    return [str(event.kind) for event in db.history(task.id)]


def test_leaving_the_block_waits_for_handlers_within_the_grace(db, app):
    started = Gate()

    @app.task("work")
    def work(run):
        started.set()
        eventually(lambda: run.draining)
        run.save("on the way out")
        return "finished"

    task = work.submit(db)
    with app.worker(db, grace="30s") as worker:
        started.pass_through()
    assert worker.attempts == 1
    assert db.result(task.id) == "finished"


@pytest.mark.parametrize("style", ["def", "async def"])
def test_cs_06_a_handler_sees_that_the_worker_drains_saves_and_gives_back(db, app, style):
    started = Gate()

    @app.task("blocking")
    def blocking(run):
        started.set()
        eventually(lambda: run.draining)
        run.save("so far")
        run.lease.release()

    @app.task("awaiting")
    async def awaiting(run):
        started.set()
        await asyncio.to_thread(eventually, lambda: run.draining)
        await run.save("so far")
        await asyncio.to_thread(run.lease.release)

    handler = blocking if style == "def" else awaiting
    task = handler.submit(db)
    with app.worker(db, handler.queue, grace="30s"):
        started.pass_through()
    assert kinds(db, task) == ["submitted", "claimed", "saved", "released"]
    assert (db.task(task.id).state, db.task(task.id).attempt) == ("ready", 1)
    lease = db.claim(handler.queue)
    assert (lease.load(), lease.attempt) == ("so far", 1)


def test_past_the_grace_an_async_handler_is_cancelled_and_its_lease_released(db, app):
    started, seen = Gate(), []

    @app.task("work")
    async def work(run):
        started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append(run.stopped.reason)
            raise

    task = work.submit(db)
    with app.worker(db, grace="50ms"):
        started.pass_through()
    assert seen == ["released"]
    assert kinds(db, task) == ["submitted", "claimed", "released"]
    assert db.history(task.id)[-1].detail["why"] == "worker_stopped"
    assert (db.task(task.id).state, db.task(task.id).attempt) == ("ready", 1)


def test_past_the_grace_a_blocking_handler_is_stopped_at_its_next_call_and_its_lease_released(db, app):
    started, seen = Gate(), []

    @app.task("work")
    def work(run):
        started.set()
        try:
            while True:
                run.check()
        except relet.LeaseStopped as stopped:
            seen.append(stopped.cause.reason)
            raise

    task = work.submit(db)
    with app.worker(db, grace="50ms"):
        started.pass_through()
    assert seen == ["released"]
    assert kinds(db, task) == ["submitted", "claimed", "released"]
    assert db.history(task.id)[-1].detail["why"] == "worker_stopped"
    assert (db.task(task.id).state, db.task(task.id).attempt) == ("ready", 1)


def test_a_lease_that_was_lost_before_is_not_released_by_a_worker_that_ends(relet_db, app, monkeypatch, caplog):
    monkeypatch.setattr(worker_module, "STOP_WAIT_S", 0.1)
    started, gate = Gate(), Gate()

    @app.task("deaf")
    def deaf(run):
        started.set()
        gate.pass_through()

    task = deaf.submit(relet_db, max_losses=1)
    with app.worker(relet_db, grace=0):
        started.pass_through()
        relet_db.clock.advance("58s")
        eventually(lambda: relet_db.task(task.id).state == "failed")
    gate.set()
    assert "it does not stop, and had lost its lease before" in caplog.text
    assert "its lease is released" not in caplog.text
    assert relet_db.rejections(task.id) == []


def test_the_lease_of_a_handler_that_never_listens_is_released_and_what_it_does_later_refused(db, app, monkeypatch):
    monkeypatch.setattr(worker_module, "STOP_WAIT_S", 0.1)
    started, gate, seen = Gate(), Gate(), []

    @app.task("deaf")
    def deaf(run):
        started.set()
        gate.pass_through()
        for verb in (
            run.check,
            lambda: run.save(1),
            run.load,
            lambda: run.lease.save(1),
            lambda: run.lease.complete(1),
        ):
            try:
                verb()
            except (relet.LeaseStopped, relet.LeaseLost) as refused:
                seen.append(type(refused).__name__)
        seen.append("end")

    task = deaf.submit(db)
    with app.worker(db, grace=0):
        started.pass_through()
    assert (db.task(task.id).state, db.task(task.id).attempt) == ("ready", 1)
    gate.set()
    eventually(lambda: "end" in seen)
    assert seen == ["LeaseStopped"] * 3 + ["LeaseLost"] * 2 + ["end"]
    assert kinds(db, task) == ["submitted", "claimed", "released"]
    assert db.history(task.id)[-1].detail["why"] == "worker_stopped"


def test_a_draining_worker_claims_no_more(db, app):
    started, gate, ran = Gate(), Gate(), []

    @app.task("work")
    def work(run, n: int):
        ran.append(n)
        started.set()
        gate.pass_through()

    tasks = [work.submit(db, n) for n in range(3)]
    with app.worker(db, grace="30s", concurrency=2) as worker:
        eventually(lambda: len(ran) == 2)
        worker.drain()
        gate.set()
    assert sorted(ran) == [0, 1]
    assert [db.task(task.id).state for task in tasks] == ["done", "done", "ready"]


def test_cr_09_a_claim_that_was_under_way_when_the_worker_was_asked_to_end_is_given_back(db, app, monkeypatch):
    under_way, gate, ran = Gate(), Gate(), []
    app.task("work")(lambda run: ran.append(run.task_id))
    call = db.backend.call

    def slow(ask, **how):
        answer = call(ask, **how)
        if isinstance(ask, Claim) and answer:
            under_way.set()
            gate.pass_through()
        return answer

    monkeypatch.setattr(db.backend, "call", slow)
    task = db.submit("work")
    with app.worker(db) as worker:
        under_way.pass_through()
        worker.drain()
        gate.set()
    assert ran == []
    assert kinds(db, task) == ["submitted", "claimed", "released"]
    assert db.history(task.id)[-1].detail["why"] == "worker_stopped"
    assert (db.task(task.id).state, db.task(task.id).attempt) == ("ready", 1)


def test_abort_stops_handlers_at_once_however_long_the_grace(db, app):
    started = Gate()

    @app.task("work")
    async def work(run):
        started.set()
        await asyncio.sleep(30)

    task = work.submit(db)
    with app.worker(db, grace="1h") as worker:
        started.pass_through()
        worker.drain()
        assert not worker.wait(0.1)
        worker.abort()
        assert worker.wait(5)
    assert kinds(db, task) == ["submitted", "claimed", "released"]
    assert db.history(task.id)[-1].detail["why"] == "worker_stopped"


def test_an_exception_in_the_block_drains_and_goes_on(db, app):
    started = Gate()

    @app.task("work")
    def work(run):
        started.set()
        eventually(lambda: run.draining)

    def block():
        with app.worker(db, grace="30s"):
            started.pass_through()
            raise ValueError("of the block")

    task = work.submit(db)
    with pytest.raises(ValueError, match="of the block"):
        block()
    assert db.task(task.id).state == "done"


def test_an_interrupt_of_the_block_aborts(db, app):
    started = Gate()

    @app.task("work")
    async def work(run):
        started.set()
        await asyncio.sleep(30)

    task = work.submit(db)
    with contextlib.suppress(KeyboardInterrupt), app.worker(db, grace="1h"):
        started.pass_through()
        raise KeyboardInterrupt
    assert kinds(db, task) == ["submitted", "claimed", "released"]
    assert db.history(task.id)[-1].detail["why"] == "worker_stopped"


def test_an_idle_worker_ends_at_once(db, app):
    app.task("work")(lambda run: None)
    with app.worker(db, grace="1h") as worker:
        pass
    assert worker.wait(0)


def test_a_worker_runs_once(db, app):
    app.task("work")(lambda run: None)
    with app.worker(db) as worker:
        pass
    with pytest.raises(relet.Invalid, match="worker: is running already; make another one"):
        worker.start()


def test_close_is_what_leaving_the_block_does(db, app):
    started = Gate()

    @app.task("work")
    def work(run):
        started.set()
        eventually(lambda: run.draining)

    task = work.submit(db)
    worker = app.worker(db, grace="30s").start()
    started.pass_through()
    worker.close()
    assert db.task(task.id).state == "done"


def test_a_draining_worker_does_not_take_back_what_it_gave_back_itself(db, app):
    started, attempts = Gate(), []

    @app.task("work", retry=relet.RetryPolicy(base=0))
    def work(run):
        attempts.append(run.attempt)
        started.set()
        eventually(lambda: run.draining)
        raise ValueError("try again")

    task = work.submit(db)
    with app.worker(db, grace="30s"):
        started.pass_through()
    assert attempts == [1]
    assert (db.task(task.id).state, db.task(task.id).attempt) == ("ready", 2)
