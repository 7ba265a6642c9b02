"""Heartbeats do not depend on the work: a busy or blocked handler keeps its lease, and so does a stepped clock."""

import asyncio
import time

import pytest

import relet
from tests.processes.recording import gaps_s, record_beats
from tests.waiting import Gate, eventually


def one_lease(db, task):
    found = db.task(task.id)
    assert (found.state, found.attempt, found.losses) == ("done", 1, 0)
    assert [event.kind for event in db.history(task.id)] == ["submitted", "claimed", "completed"]
    return found.token


@pytest.mark.slow
@pytest.mark.parametrize("own_loop", [True, False])
def test_hb_02_an_event_loop_that_is_blocked_for_three_ttls_keeps_its_lease(db, own_loop):
    app = relet.App()
    record_beats(db)

    @app.task("block", ttl="1s")
    async def block(run):
        time.sleep(3)  # noqa: ASYNC251 - the point of the test
        await run.check()
        return "done"

    async def in_the_loop_of_the_user():
        async with relet.connect_async(db.backend.url) as adb, app.worker(adb):
            await adb.result(task.id, wait=10)

    task = block.submit(db)
    if own_loop:
        app.run_until_idle(db)
    else:
        asyncio.run(in_the_loop_of_the_user())
    token = one_lease(db, task)
    assert len(gaps_s(db, token)) >= 6


@pytest.mark.slow
def test_hb_02_a_blocking_handler_that_makes_no_relet_call_keeps_its_lease(db):
    app = relet.App()

    @app.task("count", ttl="2s")
    def count(run):
        until = time.monotonic() + 5
        n = 0
        while time.monotonic() < until:
            n += 1
        return n > 0

    task = count.submit(db)
    app.run_until_idle(db)
    one_lease(db, task)


@pytest.mark.parametrize("step_s", [3_600, -3_600])
def test_ec_03_a_step_of_the_wall_clock_loses_no_lease_and_delays_no_heartbeat(relet_db, step_s):
    app = relet.App()
    started, gate = Gate(), Gate()

    @app.task("work", ttl="30s")
    def work(run):
        started.set()
        gate.pass_through()
        run.check()
        return run.lease.status

    task = work.submit(relet_db)
    with app.worker(relet_db):
        started.pass_through()
        (belief,) = relet_db.keeper._kept
        relet_db.clock.step(step_s)
        before = belief.trust.renewed_ms
        relet_db.clock.advance("10s")  # one interval
        eventually(lambda: belief.trust.renewed_ms > before)
        assert relet_db.task(task.id).live
        relet_db.clock.step(-step_s)
        relet_db.clock.advance("10s")
        eventually(lambda: belief.trust.renewed_ms > before + 10_000)
        gate.set()
        assert relet_db.result(task.id, wait=10) == "held"
    one_lease(relet_db, task)


@pytest.mark.parametrize("step_s", [3_600, -3_600])
def test_ec_03_a_step_of_the_wall_clock_neither_ends_nor_prolongs_a_lease(relet_db, step_s):
    task = relet_db.submit("work", ttl="30s")
    relet_db.claim("work")
    relet_db.clock.step(step_s)
    relet_db.clock.advance("29.9s")
    assert (relet_db.claim("work"), relet_db.sweep(), relet_db.task(task.id).live) == (None, 0, True)
    relet_db.clock.advance("0.1s")
    assert relet_db.claim("work").attempt == 2
