"""Signals, timers and times that run out; waits that meet a cancel, a drain or a lost lease."""

import asyncio

import pytest

import relet
from relet.core.errors import LeaseStopped
from tests.durable.styles import Calls
from tests.waiting import Gate


def test_a_signal_that_comes_before_it_is_waited_for_is_kept(db, handle, go):
    async def body(run):
        return await run.receive("go")

    task = handle(body).submit(db)
    assert (db.signal(task.id, "go", {"n": 1}).taken, db.task(task.id).state) == (False, "ready")
    go()
    assert db.result(task.id) == {"n": 1}


def test_a_signal_that_comes_later_wakes_the_task(db, handle, go):
    async def body(run):
        return await run.receive("go")

    task = handle(body).submit(db)
    go()
    assert (db.task(task.id).state, db.task(task.id).waiting_for) == ("waiting", "go")
    assert db.signal(task.id, "other", "not this one").taken is False
    assert go() == 0
    assert db.signal(task.id, "go", "now").taken is True
    go()
    assert db.result(task.id) == "now"


def test_signals_are_received_in_the_order_in_which_they_came_one_for_each_wait(db, handle, settle):
    crash = Calls(RuntimeError)

    async def body(run):
        found = [await run.receive("item") for _ in range(3)]
        crash()
        return found

    task = handle(body).submit(db)
    for number in range(3):
        db.signal(task.id, "item", number)
    assert settle(task).result == [0, 1, 2]


def test_a_wait_for_a_signal_that_runs_out_raises_in_this_run_and_in_every_later_one(db, handle, go, settle):
    raised, crash = [], Calls(RuntimeError)

    async def body(run):
        try:
            await run.receive("go", timeout="1h")
        except TimeoutError as late:
            raised.append(str(late))
        crash()

    task = handle(body).submit(db)
    go()
    db.clock.advance("59m")
    assert go() == 0
    db.clock.advance("1m")
    assert db.signal(task.id, "go", "at the very instant").taken is False
    assert settle(task).state == "done"
    assert raised == ["no signal 'go' came in time"] * 2


def test_a_wait_for_a_signal_that_runs_out_gives_the_default(db, handle, go):
    async def body(run):
        return [await run.receive("go", timeout="1h", default={"n": 0}), await run.receive("later")]

    task = handle(body).submit(db)
    go()
    db.clock.advance("1h")
    go()
    db.signal(task.id, "later", 1)
    go()
    assert db.result(task.id) == [{"n": 0}, 1]


@pytest.mark.parametrize(
    ("default", "kind", "value", "accepted"),
    [
        (None, "timeout", None, False), ("deny", "deny", None, False), ("accept", "accept", None, True),
        ({"kind": "edit", "value": {"n": 2}}, "edit", {"n": 2}, True),
    ],
)  # fmt: skip
def test_an_approval_that_nobody_gives_in_time_is_decided_by_time(db, handle, go, default, kind, value, accepted):
    async def body(run):
        found = await run.approval("publish", {"n": 1}, timeout="1d", default=default)
        return [str(found.kind), found.value, found.accepted, found.by]

    task = handle(body).submit(db)
    go()
    db.clock.advance("1d")
    with pytest.raises(relet.Conflict) as late:
        db.decide(task.id, "publish", "accept")
    assert late.value.code == "RELET-WAIT-OVER"
    go()
    assert db.result(task.id) == [kind, value, accepted, "timeout"]


def test_a_sleep_holds_no_lease_and_ends_at_its_time(db, handle, go):
    async def body(run):
        await run.sleep("1h")
        await run.sleep("2h", name="nap")
        return run.attempt

    task = handle(body).submit(db)
    go()
    assert (db.task(task.id).waiting_for, db.tasks(state="leased")) == ("sleep", [])
    db.clock.advance("59m59s")
    assert go() == 0
    db.clock.advance("1s")
    go()
    assert db.task(task.id).waiting_for == "nap"
    db.clock.advance("2h")
    go()
    assert db.result(task.id) == 1


def test_a_sleep_that_is_over_is_not_slept_again(db, handle, go, settle):
    crash = Calls(RuntimeError)

    async def body(run):
        for _ in range(2):
            await run.sleep("1h")
        crash()

    task = handle(body).submit(db)
    for _ in range(2):
        go()
        db.clock.advance("1h")
    assert settle(task).state == "done"
    assert [str(one.kind) for one in db.history(task.id)].count("parked") == 2


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda run: run.sleep(-1), "duration"), (lambda run: run.receive(""), "name"),
        (lambda run: run.approval("a", timeout="soon"), "timeout"),
        (lambda run: run.approval("a", default="deny"), "default"),
        (lambda run: run.approval("a", timeout=1, default="perhaps"), "default"),
        (lambda run: run.approval("a", timeout=1, default="edit"), "default"),
        (lambda run: run.approval("a", {"bad": {1}}), "ask.bad"),
    ],
    ids=["sleep", "receive", "timeout", "default without timeout", "default", "default without value", "ask"],
)  # fmt: skip
def test_a_bad_question_is_refused_by_its_field_and_the_run_goes_on(db, handle, settle, ask, field):
    fields = []

    async def body(run):
        with pytest.raises(relet.Invalid) as refused:
            await ask(run)
        fields.append(refused.value.detail["field"])
        return await run.step("goes on", Calls("on"))

    assert settle(handle(body).submit(db)).result == "on"
    assert fields == [field]


def test_a_wait_within_the_function_of_an_effect_is_refused(db, handle, settle):
    said = []

    async def wait(run):
        await run.approval("publish") if is_async(run) else run.approval("publish")

    async def body(run):
        def send(payload, effect):
            with pytest.raises(relet.Invalid) as refused:
                asyncio.run(wait(relet.current_run()))
            said.append(str(refused.value))
            return "sent"

        return await run.effect("send", 1, send)

    assert settle(handle(body).submit(db)).result == "sent"
    assert "would leave its outcome unknown" in said[0]


def is_async(run):
    return isinstance(run, relet.AsyncRun)


def test_a_cancel_while_the_task_waits_ends_it_and_no_answer_is_taken_any_more(db, handle, go):
    again = []

    async def body(run):
        again.append(await run.approval("publish"))

    task = handle(body).submit(db)
    go()
    db.cancel(task.id, "not needed any more")
    assert db.task(task.id).state == "cancelled"
    with pytest.raises(relet.Conflict):
        db.decide(task.id, "publish", "accept")
    with pytest.raises(relet.Conflict):
        db.signal(task.id, "publish", 1)
    assert (go(), again) == (0, [])


def test_a_worker_drains_at_once_while_its_tasks_wait(db, app, handle):
    async def body(run):
        await run.approval("publish")

    task = handle(body).submit(db)
    with app.worker(db, grace="1h") as worker:
        worker.wait_until_idle()
        assert db.task(task.id).state == "waiting"
    assert [str(one.kind) for one in db.history(task.id)] == ["submitted", "claimed", "parked"]


def test_a_handler_that_asks_while_its_worker_drains_parks_and_is_not_released(db, app, handle):
    begun, goes_on = Gate(), Gate()

    async def body(run):
        begun.set()
        await asyncio.to_thread(goes_on.pass_through) if is_async(run) else goes_on.pass_through()
        assert run.draining
        await run.approval("publish")

    task = handle(body).submit(db)
    with app.worker(db, grace="1h") as worker:
        begun.pass_through()
        worker.drain()
        goes_on.set()
    assert db.task(task.id).state == "waiting"
    assert "released" not in [str(one.kind) for one in db.history(task.id)]


def test_after_a_loss_every_call_is_refused_in_a_finally_too(db, handle, go):
    refused, begun = [], []

    async def body(run):
        begun.append(run.token)
        if len(begun) > 1:
            return "by the next holder"
        try:
            db.clock.advance("61s")
            await run.save("too late")
        finally:
            for verb in (run.save, run.progress, run.load, run.approval, run.receive):
                try:
                    await verb("name")
                except (LeaseStopped, relet.LeaseLost, asyncio.CancelledError) as stopped:
                    refused.append(type(stopped).__name__)

    task = handle(body).submit(db)
    go()
    assert (db.result(task.id), len(refused)) == ("by the next holder", 5)
    assert db.checkpoints(task.id) == []
    assert db.waits(task.id) == []


@pytest.mark.parametrize("fault", ["not reached", "answer lost", "answer lost, and a heartbeat refused"])
def test_a_wait_is_asked_for_until_the_store_has_said_that_it_stands(db, handle, go, monkeypatch, fault):
    real, faults, leases, seen = type(db.backend).call, [fault], [], []

    def call(self, ask, **how):
        if type(ask).__name__ != "Park" or not faults:
            return real(self, ask, **how)
        faults.pop()
        if fault == "not reached":
            raise relet.Unavailable("busy")
        real(self, ask, **how)
        if "heartbeat" in fault:
            with pytest.raises(relet.LeaseLost):
                leases[0].renew()
        raise relet.OutcomeUnknown("the answer was lost")

    monkeypatch.setattr(type(db.backend), "call", call)

    async def body(run):
        leases.append(run.lease)
        try:
            return (await run.approval("publish")).by
        except Exception as wrong:
            seen.append(wrong)
            raise

    task = handle(body).submit(db)
    go()
    assert (db.task(task.id).state, faults, seen) == ("waiting", [], [])
    assert [str(one.kind) for one in db.history(task.id)] == ["submitted", "claimed", "parked"]
    db.decide(task.id, "publish", "accept", by="ann")
    go()
    assert db.result(task.id) == "ann"


def test_a_wait_that_cannot_be_asked_for_while_the_lease_is_held_costs_no_attempt(db, handle, go, monkeypatch):
    real, away = type(db.backend).call, [True]

    def call(self, ask, **how):
        if type(ask).__name__ == "Park" and away:
            away.clear()
            db.clock.advance("61s")
            raise relet.OutcomeUnknown("no answer")
        return real(self, ask, **how)

    monkeypatch.setattr(type(db.backend), "call", call)

    async def body(run):
        return (await run.approval("publish")).by

    task = handle(body).submit(db)
    go()
    db.clock.advance("2s")
    go()
    found = db.task(task.id)
    assert (found.state, found.failures) == ("waiting", 0)
