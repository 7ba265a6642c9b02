"""The ways to run an app: a block, an async block, until idle, or as a program that ends by a signal."""

import asyncio
import signal
import threading
from pathlib import Path

import pytest

import relet
from relet.worker.warden import Warden
from tests.waiting import Gate, eventually

PROGRAMS = Path(__file__).parent / "programs"


def test_with_works_in_the_background_until_the_block_is_left(db, app):
    app.task("work")(lambda run, n: n + 1)
    with app.worker(db) as worker:
        task = db.submit("work", {"n": 1})
        assert db.result(task.id, wait=10) == 2
    late = db.submit("work", {"n": 2})
    assert worker.wait(0)
    assert db.task(late.id).state == "ready"


def test_async_with_runs_handlers_in_the_loop_of_the_user(url, app):
    loops, threads, own = [], [], []

    @app.task("work")
    async def work(run, n: int):
        loops.append(asyncio.get_running_loop())
        return n + 1

    @app.task("block", queue="work")
    def block(run):
        threads.append(threading.current_thread())

    async def main():
        async with relet.connect_async(url) as adb, app.worker(adb, concurrency=2):
            task, other = await work.submit(adb, 1), await block.submit(adb)
            assert await adb.result(task.id, wait=10) == 2
            await adb.result(other.id, wait=10)
            own.append(asyncio.get_running_loop())

    asyncio.run(main())
    assert loops == own
    assert threads[0] is not threading.main_thread()


def test_async_with_leaves_the_loop_running_while_it_drains(url, app):
    seen = []

    @app.task("work")
    async def work(run):
        seen.append("started")
        await asyncio.to_thread(eventually, lambda: run.draining)
        await asyncio.sleep(0)  # only a loop that still runs comes back from here
        return "finished"

    async def main():
        async with relet.connect_async(url) as adb:
            async with app.worker(adb, grace="30s"):
                task = await work.submit(adb)
                await asyncio.to_thread(eventually, lambda: seen)
            return await adb.result(task.id)

    assert asyncio.run(main()) == "finished"


def test_a_cancelled_async_block_aborts_and_releases(url, app):
    started = Gate()

    @app.task("work")
    async def work(run):
        started.set()
        await asyncio.sleep(30)

    async def main():
        async with relet.connect_async(url) as adb:
            task = await work.submit(adb)

            async def block():
                async with app.worker(adb, grace="1h"):
                    await asyncio.sleep(30)

            running = asyncio.create_task(block())
            await asyncio.to_thread(started.pass_through)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            return await adb.task(task.id)

    task = asyncio.run(main())
    assert (task.state, task.attempt) == ("ready", 1)


def test_a_worker_takes_an_awaiting_client_in_a_plain_block_too(url, app):
    app.task("work")(lambda run: "done")

    async def main():
        async with relet.connect_async(url) as adb:
            task = await adb.submit("work")
            await asyncio.to_thread(app.run_until_idle, adb)
            return await adb.result(task.id)

    assert asyncio.run(main()) == "done"


def test_run_until_idle_counts_attempts_and_leaves_what_is_delayed(db, app):
    @app.task("work", retry=relet.RetryPolicy(base=0))
    def work(run, fails: int):
        if run.attempt <= fails:
            raise ValueError(run.attempt)

    tasks = [work.submit(db, 0), work.submit(db, 2), work.submit(db, 0, delay="1h")]
    assert app.run_until_idle(db) == 4
    assert [db.task(task.id).state for task in tasks] == ["done", "done", "ready"]
    assert app.run_until_idle(db) == 0


def test_run_until_idle_sees_what_handlers_submit(db, app):
    @app.task("work")
    def work(run, n: int):
        if n:
            work.submit(db, n - 1)

    work.submit(db, 3)
    assert app.run_until_idle(db) == 4


def test_run_until_idle_works_inside_a_running_loop(db, app):
    @app.task("work")
    async def work(run):
        return "done"

    async def notebook():
        task = work.submit(db)
        app.run_until_idle(db)
        return db.result(task.id)

    assert asyncio.run(notebook()) == "done"


def test_what_ends_a_worker_unasked_is_raised_where_it_is_left(db, app, monkeypatch):
    started, seen = Gate(), []

    @app.task("work")
    async def work(run):
        started.set()
        try:
            await asyncio.sleep(30)
        finally:
            seen.append(run.stopped)

    work.submit(db)

    def block():
        with app.worker(db) as worker:
            started.pass_through()
            monkeypatch.setattr(worker, "_take_finished", lambda: 1 / 0)
            worker.wait()

    with pytest.raises(ZeroDivisionError):
        block()
    assert eventually(lambda: seen)[0] is not None
    assert len(db.keeper._kept) == 0


def test_signals_are_given_back_when_the_worker_ends(db, app):
    app.task("work")(lambda run: None)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with app.worker(db, signals=True):
        during = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    assert all(one is not other for one, other in zip(before, during, strict=True))


def test_signals_are_left_alone_unless_asked_for(db, app):
    app.task("work")(lambda run: None)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with app.worker(db):
        assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_signals_are_given_back_after_a_fault_too(db, app, monkeypatch):
    app.task("work")(lambda run: None)
    before = signal.getsignal(signal.SIGTERM)
    worker = app.worker(db, signals=True)
    monkeypatch.setattr(worker, "_take_finished", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError), worker:
        worker.wait()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (relet.Forbidden("make another key"), ("worker me ends: make another key", False)),
        (ZeroDivisionError(), ("worker me ends by a fault", True)),
    ],
)
def test_an_error_that_ends_a_worker_is_told_in_a_line_and_a_fault_with_its_trace(
    db, app, monkeypatch, caplog, fault, said
):
    app.task("work")(lambda run: None)
    worker = app.worker(db, holder="me")

    def end():
        raise fault

    monkeypatch.setattr(worker, "_take_finished", end)
    with pytest.raises(type(fault)), worker:
        worker.wait()
    told = [one for one in caplog.records if one.levelname == "ERROR"]
    assert [(one.message, bool(one.exc_info or one.exc_text)) for one in told] == [said]


@pytest.mark.parametrize("fault", ["a handler that another process cannot find", "no process to be had"])
def test_a_worker_that_cannot_start_leaves_no_signal_taken_and_no_process(db, app, monkeypatch, fault):
    app.task("beside", heartbeat="process")(lambda run: None)
    if fault == "no process to be had":

        def refuse():
            raise BlockingIOError(11, "Resource temporarily unavailable")

        monkeypatch.setattr(Warden, "_start", staticmethod(refuse))
    else:
        app.task("apart", isolation="process")(lambda run: None)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    running = set(threading.enumerate())
    worker = app.bound_worker(db, None, 1, holder="worker", grace=10)
    with pytest.raises(relet.Invalid if "handler" in fault else BlockingIOError):
        worker.start()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    # But for the usher of the store's gate, which belongs to the client.
    eventually(lambda: {one.name for one in set(threading.enumerate()) - running} <= {"relet-gate"})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_app_run_works_until_a_signal_and_then_drains(start, url, db, number):
    program = start(PROGRAMS / "app_run.py", url)
    task = db.submit("work", {"wait": False})
    assert program.line() == "ran"
    assert db.result(task.id, wait=10) == "ran"
    long = db.submit("work", {"wait": True})
    assert program.line() == "waiting"
    program.send(number)
    assert program.line() == "draining"
    assert program.wait() == 0
    assert db.result(long.id) == "drained"
    assert "relet: draining; once more to abort" in program.errors


def test_app_run_takes_the_url_of_the_environment(start, url, db):
    program = start(PROGRAMS / "app_run.py", environment={"RELET_URL": url})
    task = db.submit("work", {"wait": False})
    assert db.result(task.id, wait=20) == "ran"
    program.send(signal.SIGTERM)
    assert program.wait() == 0
