"""A lost lease: the work is told, nothing guarded starts after it, and the worker itself goes on."""

import asyncio
import contextlib

import pytest

import relet
from relet.core.rules.release import Release
from relet.testing.stores import open_store
from tests.waiting import Gate, eventually

LOST = "58s"  # of a ttl of 60, which the holder trusts for 57
LAPSED = "61s"


@pytest.fixture
def steered(relet_clock, tmp_path):
    """A store whose file a second client may open, too."""
    with open_store(tmp_path, relet_clock) as client:
        yield client


@pytest.fixture
def other(steered, relet_clock, tmp_path):
    with open_store(tmp_path, relet_clock, holder="other") as client:
        yield client


class Loss:
    """A worker with one task, whose lease is lost while the handler waits; it is asked to end, so claims no more."""

    def __init__(self, db, app, handler):
        self.db, self.started, self.lost = db, Gate(), Gate()
        app.task("work")(handler)
        self.task = db.submit("work")
        self._worker = app.worker(db, grace=30)

    def __enter__(self):
        self._worker.start()
        self.started.pass_through()
        self._worker.drain()
        return self

    def __exit__(self, *_):
        self._worker.close()

    def happens(self, after=LOST):
        self.db.clock.advance(after)
        self.lost.set()
        assert self._worker.wait(15)

    def left_one_release(self):
        """That the lease was given back is all that the store was told after the loss."""
        self.db.keeper.close()  # it sends the release, perhaps after the handler has ended
        events = self.db.history(self.task.id)
        assert events[-1].detail.get("by") == "holder_expired"
        return [event.kind for event in events] == ["submitted", "claimed", "lapsed"]


def test_ll_02_an_async_handler_is_cancelled_when_its_own_deadline_passes(relet_db, app):
    """The handler makes no relet call, and no answer of the store is needed."""
    seen = []

    async def work(run):
        loss.started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append((run.stopped.reason, run.lease.status))
            raise

    loss = Loss(relet_db, app, work)
    with loss:
        loss.happens(after="57.1s")
    assert seen == [("expired", "lost")]
    assert relet_db.task(loss.task.id).failures == 0


def test_ll_02_the_work_is_stopped_without_a_word_from_the_store(relet_db, app, monkeypatch):
    seen = []

    async def work(run):
        loss.started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append(run.stopped.reason)
            raise

    def nobody_answers(ask, **_):
        raise relet.Unavailable("cut off")

    loss = Loss(relet_db, app, work)
    with loss:
        with monkeypatch.context() as cut:
            cut.setattr(relet_db.backend, "call", nobody_answers)
            relet_db.clock.advance("57.1s")
            eventually(lambda: seen)
        loss.happens(after=0)
    assert seen == ["expired"]


def test_a_blocking_handler_is_stopped_at_its_next_call_and_except_exception_does_not_swallow_it(relet_db, app):
    seen = []

    def work(run):
        loss.started.set()
        loss.lost.pass_through()
        while True:
            try:
                run.save("never")
            except Exception:
                seen.append("swallowed")

    loss = Loss(relet_db, app, work)
    with loss:
        loss.happens()
    assert seen == []
    assert loss.left_one_release()


@pytest.mark.parametrize("verb", ["check", "save", "load"])
def test_no_verb_of_a_blocking_run_starts_after_the_loss_in_finally_either(relet_db, app, verb):
    seen = []

    def work(run):
        call = {"check": run.check, "save": lambda: run.save(1), "load": run.load}[verb]
        loss.started.set()
        loss.lost.pass_through()
        try:
            call()
        finally:
            for _ in range(2):
                try:
                    call()
                except relet.LeaseStopped as stopped:
                    seen.append((type(stopped.cause), stopped.cause.reason))

    loss = Loss(relet_db, app, work)
    with loss:
        loss.happens()
    assert seen == [(relet.LeaseLost, "expired")] * 2
    assert loss.left_one_release()


@pytest.mark.parametrize("verb", ["check", "save", "load"])
def test_no_verb_of_an_async_run_starts_after_the_loss_in_finally_either(relet_db, app, verb):
    seen = []

    async def work(run):
        call = {"check": run.check, "save": lambda: run.save(1), "load": run.load}[verb]
        loss.started.set()
        try:
            await asyncio.sleep(30)
        finally:
            for _ in range(2):
                try:
                    await call()
                except relet.LeaseLost as lost:
                    seen.append((lost is run.stopped, lost.reason))

    loss = Loss(relet_db, app, work)
    with loss:
        loss.happens()
    assert seen == [(True, "expired")] * 2
    assert loss.left_one_release()


@pytest.mark.parametrize("style", ["def", "async def"])
def test_a_result_that_comes_after_the_loss_is_not_handed_in(relet_db, app, style):
    def blocking(run):
        loss.started.set()
        eventually(lambda: run.stopped)
        return "late"

    async def awaiting(run):
        loss.started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(30)
        return "late"

    loss = Loss(relet_db, app, blocking if style == "def" else awaiting)
    with loss:
        loss.happens()
    assert loss.left_one_release()
    assert relet_db.task(loss.task.id).result is None


def test_ll_07_a_holder_that_lost_its_lease_by_its_own_clock_sends_one_release_and_nothing_else(
    relet_db, app, monkeypatch
):
    asked = []

    def work(run):
        loss.started.set()
        loss.lost.pass_through()
        for _ in range(3):
            with contextlib.suppress(relet.LeaseStopped):
                run.save("never")

    loss = Loss(relet_db, app, work)
    call = relet_db.backend.call
    with loss:
        monkeypatch.setattr(relet_db.backend, "call", lambda ask, **how: asked.append(ask) or call(ask, **how))
        loss.happens()
        assert loss.left_one_release()
    assert [type(ask) for ask in asked if hasattr(ask, "handle") or hasattr(ask, "handles")] == [Release]
    assert relet_db.task(loss.task.id).attempt == 2


@pytest.mark.parametrize("style", ["def", "async def"])
def test_a_need_that_the_lease_cannot_cover_is_refused_and_stops_nothing(relet_db, app, style):
    @app.task("blocking")
    def blocking(run):
        with pytest.raises(relet.LeaseLost, match="are needed"):
            run.check(need="2h")
        run.check(need="10s")
        return run.stopped

    @app.task("awaiting")
    async def awaiting(run):
        with pytest.raises(relet.LeaseLost, match="are needed"):
            await run.check(need="2h")
        await run.check(need="10s")
        return run.stopped

    handler = blocking if style == "def" else awaiting
    task = handler.submit(relet_db)
    app.run_until_idle(relet_db)
    assert (relet_db.task(task.id).state, relet_db.result(task.id)) == ("done", None)


def test_a_stop_inside_an_exception_group_is_a_stop_and_not_a_failure(relet_db, app):
    def work(run):
        loss.started.set()
        loss.lost.pass_through()
        try:
            run.check()
        except relet.LeaseStopped as stopped:
            raise BaseExceptionGroup("several", [ValueError("other"), stopped]) from None

    loss = Loss(relet_db, app, work)
    with loss:
        loss.happens()
    assert loss.left_one_release()
    assert relet_db.task(loss.task.id).failures == 0


def test_a_takeover_that_no_heartbeat_saw_is_told_by_the_first_refused_write(steered, other, app, monkeypatch):
    seen = []

    def work(run):
        run.save("first")
        monkeypatch.setattr(run.lease.belief, "lose_by_clock", lambda: False)  # as if its own clock had stood still
        steered.keeper.remove(run.lease.belief)
        loss.started.set()
        loss.lost.pass_through()
        try:
            run.save("second")
        except relet.LeaseStopped as stopped:
            seen.append((stopped.cause.reason, stopped.cause.token, stopped.cause.current_token))
            raise

    loss = Loss(steered, app, work)
    with loss:
        steered.clock.advance(LAPSED)
        lease = other.claim("work")
        before = other.history(loss.task.id)
        loss.happens(after=0)
        assert other.history(loss.task.id) == before
        assert (lease.load(), lease.attempt) == ("first", 2)
        lease.complete("by the other")
    assert seen == [("superseded", before[1].token, lease.token)]
    assert lease.token > before[1].token
    assert steered.result(loss.task.id) == "by the other"


def test_ts_01_the_worker_goes_on_with_other_tasks_after_a_loss(relet_db, app):
    started, seen = Gate(), []

    @app.task("work")
    async def work(run, name: str):
        seen.append(name)
        if seen == ["first"]:
            started.set()
            await asyncio.sleep(30)
        return name

    first, second = work.submit(relet_db, "first", priority=1), work.submit(relet_db, "second")
    with app.worker(relet_db):
        started.pass_through()
        relet_db.clock.advance(LAPSED)
        assert [relet_db.result(task.id, wait=10) for task in (first, second)] == ["first", "second"]
    assert sorted(seen) == ["first", "first", "second"]
    assert relet_db.task(first.id).attempt == 2


def test_ts_01_the_loss_of_one_lease_leaves_the_others_of_the_worker_alone(relet_db, app):
    started, go_on = Gate(), Gate()

    @app.task("short", ttl="10s", queue="work")
    async def short(run):
        if run.attempt == 1:
            await asyncio.sleep(30)

    @app.task("long", ttl="60s", queue="work")
    async def long(run):
        started.set()
        await asyncio.to_thread(go_on.pass_through)
        return run.attempt

    brief, lengthy = short.submit(relet_db), long.submit(relet_db)
    with app.worker(relet_db, concurrency=2):
        started.pass_through()
        eventually(lambda: relet_db.task(brief.id).live)
        relet_db.clock.advance("11s")
        eventually(lambda: relet_db.task(brief.id).state == "done")
        assert relet_db.task(lengthy.id).live
        go_on.set()
        assert relet_db.result(lengthy.id, wait=10) == 1
    assert (relet_db.task(brief.id).losses, relet_db.task(lengthy.id).losses) == (1, 0)
