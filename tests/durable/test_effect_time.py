"""Time in effects: what is left of a try, threads that are left behind, cancels half-way, answers that come late."""

import asyncio
import threading

import pytest

import relet
from relet.client.durable.effects import STARTS_MAX
from tests.durable.contracts import state_of
from tests.durable.styles import Calls
from tests.waiting import Gate, eventually


@pytest.fixture
def recording(db, monkeypatch):
    """Let time pass on every clock between the record of a try and its answer, so often."""

    def recording(takes, times):
        real = type(db.backend).call

        def call(self, ask, **how):
            answer = real(self, ask, **how)
            if type(ask).__name__ == "StartEffect" and passed < times:
                passed.append(takes)
                db.clock.advance(takes)
            return answer

        passed = Passed()
        monkeypatch.setattr(type(db.backend), "call", call)

    return recording


class Passed(list):
    """How often time has passed; compares by its length."""

    def __lt__(self, times):
        return len(self) < times


def test_a_function_is_told_what_is_left_of_its_time_since_before_the_try_was_recorded(db, handle, settle, recording):
    recording("12s", times=1)

    async def body(run):
        return await run.effect("send", 1, lambda payload, effect: effect.timeout, timeout="30s")

    assert settle(handle(body).submit(db)).result == 18.0


def test_a_try_whose_time_is_over_before_it_could_be_sent_is_not_sent_but_recorded_anew(
    db, handle, settle, recording
):
    recording("10s", times=1)
    send = Calls("sent")

    async def body(run):
        return await run.effect("send", 1, send, timeout="10s")

    task = handle(body).submit(db)
    done = settle(task)
    assert (done.result, done.failures, len(send)) == ("sent", 0, 1)
    assert (send[0][1].attempt, send[0][1].repeated) == (2, False)
    assert [one.detail["outcome"] for one in db.history(task.id) if one.kind == "effect_ended"] == [
        "failed", "succeeded",
    ]  # fmt: skip


def test_a_store_that_is_always_too_slow_ends_in_an_error_that_says_that_nothing_was_sent(
    db, handle, settle, recording
):
    recording("10s", times=STARTS_MAX)
    send = Calls("sent")

    async def body(run):
        with pytest.raises(TimeoutError, match="nothing was sent; 3 times its timeout of 10000 ms was over"):
            await run.effect("send", 1, send, timeout="10s")

    assert settle(handle(body).submit(db)).state == "done"
    assert (len(send), state_of(db)) == (0, "failed")


# -- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [False, True], ids=["the function", "the check"])
def test_without_a_timeout_given_a_blocking_handler_calls_in_its_own_thread(db, app, settle, check):
    threads = []

    def send(payload, effect):
        threads.append(threading.get_ident())
        if check:
            raise OSError("reset")

    def look(payload, effect):
        threads.append(threading.get_ident())
        return "found"

    @app.task("work")
    def work(run):
        threads.append(threading.get_ident())
        run.effect("send", 1, send, contract=relet.Queryable(look))

    assert settle(work.submit(db)).state == "done"
    assert len(threads) == (3 if check else 2)
    assert len(set(threads)) == 1


def test_an_awaiting_handler_awaits_coroutines_in_its_loop_and_calls_plain_functions_in_a_thread(db, app, settle):
    threads = []

    async def send(payload, effect):
        threads.append(threading.get_ident())

    @app.task("work")
    async def work(run):
        threads.append(threading.get_ident())
        await run.effect("coroutine", 1, send)
        await run.effect("plain", 1, lambda payload, effect: threads.append(threading.get_ident()))

    assert settle(work.submit(db)).state == "done"
    assert threads[0] == threads[1] != threads[2]


def test_a_receipt_that_comes_after_the_timeout_is_kept_as_evidence_and_used(db, app, settle, style):
    left = Gate()

    def send(payload, effect):
        left.pass_through()
        return {"id": 7}

    @app.task("async def")
    async def awaiting(run):
        return await run.effect("send", 1, send, timeout=0.02)

    @app.task("def")
    def blocking(run):
        return run.effect("send", 1, send, timeout=0.02)

    task = (awaiting if style == "async def" else blocking).submit(db)
    assert settle(task).state == "waiting"
    left.set()
    (evidence,) = eventually(lambda: db.effects()[0].evidence)
    assert (evidence.outcome, evidence.receipt) == ("applied", {"id": 7})
    assert state_of(db) == "unknown"  # it moves nothing by itself


# -- cancels half-way ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contract", [relet.Keyed("24h"), relet.Opaque()], ids=["keyed", "opaque"])
def test_an_effect_that_is_cancelled_half_way_is_unknown_at_once_to_a_run_that_lives_on(db, app, settle, contract):
    calls, states = [], []

    async def send(payload, effect):
        calls.append((effect.attempt, effect.repeated))
        if len(calls) == 1:
            await asyncio.Event().wait()
        return "sent"

    @app.task("work")
    async def work(run):
        if run.attempt == 1 and not calls:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await run.effect("send", 1, send, contract=contract)
            states.append(state_of(db))
        return await run.effect("send", 1, send, contract=contract)

    task = work.submit(db)
    found = settle(task)
    assert states == ["unknown"]
    if contract.repeatable:
        assert (found.result, calls) == ("sent", [(1, False), (2, True)])
    else:
        assert (found.state, calls) == ("waiting", [(1, False)])
        db.reconcile(db.effects()[0].id, "applied", {"id": 7})
        assert settle(task).result == {"id": 7}


@pytest.mark.parametrize(
    ("ask_type", "state", "tries"), [("StartEffect", "failed", 2), ("EndEffect", "succeeded", 1)],
    ids=["not sent, and tried again", "no receipt is lost"],
)  # fmt: skip
def test_a_cancel_while_the_store_is_asked_leaves_no_try_under_way(
    db, app, settle, monkeypatch, ask_type, state, tries
):
    real, asked, goes_on = type(db.backend).call, Gate(), Gate()

    def call(self, ask, **how):
        answer = real(self, ask, **how)
        if type(ask).__name__ == ask_type and not asked.is_set():
            asked.set()
            goes_on.pass_through()
        return answer

    monkeypatch.setattr(type(db.backend), "call", call)
    send = Calls("sent")

    @app.task("work")
    async def work(run):
        trying = asyncio.create_task(run.effect("send", 1, send))
        await asyncio.to_thread(asked.pass_through)
        trying.cancel()
        asyncio.get_running_loop().call_soon(goes_on.set)
        with pytest.raises(asyncio.CancelledError):
            await trying
        assert state_of(db) == state
        return await run.effect("send", 1, send)

    assert settle(work.submit(db)).result == "sent"
    assert [(call.attempt, call.repeated) for _, call in send] == [(tries, False)]
