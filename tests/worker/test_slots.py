"""Slots: nothing is claimed that cannot start, and as much runs at once as was asked for."""

import asyncio
import threading

import pytest

import relet
from relet.core.trust import Status
from relet.worker import worker as worker_module
from tests.waiting import Gate, eventually


class Crowd:
    """Counts how many are inside at once."""

    def __init__(self):
        self._lock = threading.Lock()
        self.now = self.most = self.ever = 0

    def __enter__(self):
        with self._lock:
            self.now, self.ever = self.now + 1, self.ever + 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_):
        with self._lock:
            self.now -= 1


@pytest.mark.slow
def test_hb_06_nothing_is_claimed_without_a_free_slot(db, app):
    held = []

    @app.task("work", ttl="1s")
    def work(run, n: int):
        before = run.lease.last_heartbeat
        eventually(lambda: run.lease.last_heartbeat > before)  # a third of the ttl, four times
        held.append(db.stats("work").queues[0].leased)

    tasks = [work.submit(db, n) for n in range(4)]
    assert app.run_until_idle(db, concurrency=1) == 4
    assert held == [1] * 4
    assert [db.task(task.id).attempt for task in tasks] == [1] * 4


@pytest.mark.parametrize("style", ["def", "async def"])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_as_many_run_at_once_as_was_asked_for_and_never_more(db, app, style, concurrency):
    crowd, full = Crowd(), Gate()

    def wait():
        with crowd:
            if crowd.now == concurrency:
                full.set()
            full.pass_through()

    @app.task("work")
    def blocking(run):
        wait()

    @app.task("awaiting", queue="work")
    async def awaiting(run):
        await asyncio.to_thread(wait)

    db.submit_many("work", [None] * 7, kind="work" if style == "def" else "awaiting")
    assert app.run_until_idle(db, concurrency=concurrency) == 7
    assert (crowd.most, crowd.ever) == (concurrency, 7)


def test_async_handlers_of_one_worker_share_a_loop(db, app):
    loops = set()
    inside = []

    @app.task("work")
    async def work(run):
        loops.add(asyncio.get_running_loop())
        inside.append(run)
        await asyncio.to_thread(eventually, lambda: len(inside) == 3)

    db.submit_many("work", [None] * 3)
    assert app.run_until_idle(db, concurrency=3) == 3
    assert len(loops) == 1


def test_a_slow_handler_does_not_keep_the_other_slots_from_going_on(db, app):
    gate = Gate()

    @app.task("work")
    def work(run, slow: bool):
        if slow:
            gate.pass_through()

    slow = work.submit(db, True, priority=1)
    quick = [work.submit(db, False) for _ in range(5)]
    with app.worker(db, concurrency=2):
        eventually(lambda: all(db.task(task.id).state == "done" for task in quick))
        assert db.task(slow.id).live
        gate.set()


def test_larger_priority_first_then_the_older_one(db, app):
    order = []
    app.task("work")(lambda run, name: order.append(name))
    for name, priority in [("a", 0), ("b", 5), ("c", 0), ("d", 5)]:
        db.submit("work", {"name": name}, priority=priority)
    app.run_until_idle(db)
    assert order == ["b", "d", "a", "c"]


def test_a_worker_whose_heartbeats_fail_takes_no_more_work(relet_db, app, monkeypatch):
    monkeypatch.setattr(worker_module, "SWEEP_EVERY_S", 0.02)
    started, gate = Gate(), Gate()
    leases = []

    @app.task("work")
    def work(run, first: bool):
        leases.append(run.lease)
        if first:
            started.set()
            gate.pass_through()

    work.submit(relet_db, True, priority=1)
    second = work.submit(relet_db, False)
    with app.worker(relet_db, concurrency=1) as worker:
        started.pass_through()
        worker.concurrency = 2
        eventually(lambda: relet_db.task(second.id).state == "done")
        leases[0].belief.trust.miss(relet_db.clock.fast_ms() + 1_000_000)
        assert leases[0].status is Status.DOUBTFUL
        _has_its_turn(worker)  # the one that had begun before it was in doubt is over
        third = work.submit(relet_db, False)
        _has_its_turn(worker)
        assert relet_db.task(third.id).state == "ready"
        leases[0].renew()
        eventually(lambda: relet_db.task(third.id).state == "done")
        gate.set()


def _has_its_turn(worker):
    before = worker._sweep_at
    eventually(lambda: worker._sweep_at > before)


def test_the_lease_is_kept_from_the_claim_on_and_no_longer_than_its_attempt(db, app):
    kept = []

    @app.task("work")
    def work(run):
        kept.append(run.lease.belief in db.keeper._kept)

    work.submit(db)
    app.run_until_idle(db)
    assert kept == [True]
    assert len(db.keeper._kept) == 0


def test_a_task_that_came_while_the_worker_was_idle_is_taken_soon(db, app):
    app.task("work")(lambda run: "done")
    with app.worker(db), relet.connect(f"sqlite:///{db.place}") as other:
        assert other.result(other.submit("work").id, wait=5) == "done"


@pytest.mark.parametrize("style", ["def", "async def"])
def test_what_no_thread_can_be_had_for_is_given_back_and_the_worker_goes_on(db, app, monkeypatch, style, caplog):
    @app.task("work")
    def blocking(run):
        return "done"

    @app.task("async", queue="work")
    async def awaiting(run):
        return "done"

    handler = blocking if style == "def" else awaiting
    real, refused = threading.Thread.start, []

    def start(thread):
        if thread.name.startswith(("relet-task", "relet-loop")) and len(refused) < 2:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    tasks = [handler.submit(db) for _ in range(3)]
    with app.worker(db, concurrency=3, holder="worker"):
        assert [db.result(task.id, wait=15) for task in tasks] == ["done"] * 3
    assert len(refused) == 2
    assert [db.task(task.id).attempt for task in tasks] == [1] * 3
    assert db.keeper._kept == {}
    assert "it could not be started here" in caplog.text
