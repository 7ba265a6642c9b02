"""Effects: recorded before they are tried, answered by their receipts, and never repeated against their contract."""

import threading

import pytest

import relet
from relet.core.rules.start_effect import BUSY, OTHER_PAYLOAD
from tests.durable.contracts import ALL, DAY, named
from tests.durable.styles import Calls
from tests.waiting import eventually


@pytest.mark.parametrize("contract", ALL, ids=named)
def test_a_receipt_is_given_back_in_every_later_run_and_nothing_is_called_again(db, handle, settle, contract):
    send, crash, told = Calls({"id": 7}), Calls(RuntimeError, None), []

    async def body(run):
        told.append(await run.effect("send", {"to": "ann"}, send, contract=contract))
        crash()

    task = handle(body).submit(db)
    assert settle(task).state == "done"
    assert (told, len(send)) == ([{"id": 7}] * 2, 1)
    (effect,) = db.effects()
    assert (effect.state, effect.receipt, effect.tries, effect.name) == ("succeeded", {"id": 7}, 1, "send")
    assert effect.contract.kind == contract.kind


def test_an_effect_is_on_record_before_it_is_called_and_its_function_is_told_about_it(db, handle, settle):
    seen = []

    def send(payload, effect):
        (recorded,) = db.effects(state="started")
        seen.append((payload, recorded.id == effect.id, recorded.token == effect.token, effect))
        return effect.attempt

    async def body(run):
        return await run.effect("send", {"to": "ann"}, send, timeout="30s")

    task = handle(body).submit(db)
    assert settle(task).result == 1
    payload, same_id, same_token, effect = seen[0]
    assert (payload, same_id, same_token) == ({"to": "ann"}, True, True)
    assert (effect.attempt, effect.repeated, effect.timeout) == (1, False, 30.0)
    assert effect.headers == {"Idempotency-Key": effect.key}
    assert effect.token == db.task(task.id).token


def test_without_a_contract_an_effect_is_opaque(db, handle, settle):
    async def body(run):
        await run.effect("send", None, Calls())

    handle(body).submit(db)
    assert db.effects() == []
    settle(db.tasks()[0])
    assert db.effects()[0].contract.kind == "opaque"


def test_two_tasks_with_the_same_name_and_payload_are_two_effects_with_two_keys(db, handle, settle):
    keys = []

    async def body(run):
        await run.effect("send", {"to": "ann"}, lambda payload, effect: keys.append(effect.key))

    handler = handle(body)
    for _ in range(2):
        settle(handler.submit(db))
    assert len(set(keys)) == 2


def test_a_business_key_makes_it_one_effect_for_all_tasks(db, handle, settle):
    send = Calls({"id": 7})

    async def body(run):
        return await run.effect("charge", {"order": 7}, send, key="charge:order-7")

    handler = handle(body)
    assert [settle(handler.submit(db)).result for _ in range(3)] == [{"id": 7}] * 3
    assert (len(send), len(db.effects())) == (1, 1)


def test_another_payload_under_a_name_fails_the_task_for_good_and_sends_nothing(db, handle, settle):
    send, crash = Calls(), Calls(RuntimeError)

    async def body(run):
        await run.effect("send", {"attempt": run.attempt}, send)
        crash()

    failed = settle(handle(body).submit(db))
    assert (failed.state, failed.code, len(send)) == ("failed", OTHER_PAYLOAD, 1)
    assert "one key stands for one payload" in failed.error
    assert "relet effects" in failed.error


def test_another_payload_under_a_business_key_is_refused_to_the_other_task(db, handle, settle):
    send = Calls()

    async def body(run):
        await run.effect("charge", run.task.labels, send, key="charge:order-7")

    handler = handle(body)
    assert settle(handler.submit(db, labels={"amount": "1"})).state == "done"
    assert settle(handler.submit(db, labels={"amount": "2"})).code == OTHER_PAYLOAD
    assert len(send) == 1


# -- completion, concurrency, crashes ----------------------------------------------------------------------------


def test_a_handler_that_returns_with_an_unsettled_effect_is_parked_until_it_is_reconciled(db, handle, settle):
    send = Calls(OSError("reset"))

    async def body(run):
        try:
            return await run.effect("send", 1, send, contract=relet.Keyed(retention=DAY))
        except OSError:
            return "done, as if nothing had happened"

    task = handle(body).submit(db)
    waiting = settle(task)
    assert (waiting.state, waiting.result, waiting.failures) == ("waiting", None, 0)
    (effect,) = db.effects(state="unknown")
    db.reconcile(effect.id, "applied", "its receipt")
    assert (settle(task).result, len(send)) == ("its receipt", 1)


def test_id_04_of_twenty_threads_with_one_key_one_calls_and_the_others_are_told(db, app, settle):
    together, busy, receipts = threading.Barrier(20, timeout=15), [], []
    all_refused, send_gate = threading.Event(), []

    def send(payload, effect):
        send_gate.append(1)
        assert all_refused.wait(15)
        return {"id": 7}

    @app.task("work")
    def work(run):
        def one():
            together.wait()
            try:
                receipts.append(run.effect("charge", {"order": 7}, send, key="charge:order-7"))
            except relet.Conflict as conflict:
                busy.append(conflict.code)
                if len(busy) == 19:
                    all_refused.set()

        threads = [threading.Thread(target=one) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return run.effect("charge", {"order": 7}, send, key="charge:order-7")

    assert settle(work.submit(db)).result == {"id": 7}
    assert (busy, receipts, send_gate) == ([BUSY] * 19, [{"id": 7}], [1])


def test_id_07_a_payment_within_the_run_is_not_repeated_when_the_run_is(db, handle, settle):
    pay, receipts = Calls({"charge": "ch_1"}), []

    async def body(run):
        receipts.append(await run.effect("pay", {"amount": 5}, pay))
        raise RuntimeError("after the payment")

    task = handle(body).submit(db, id="order-7")
    assert settle(task).state == "failed"
    assert (len(pay), receipts) == (1, [{"charge": "ch_1"}] * 5)  # the key of a submit protects nothing in here


@pytest.mark.parametrize(("outcome", "calls"), [("applied", 1), ("not_applied", 2)])
def test_id_08_an_opaque_effect_of_a_holder_that_died_waits_for_a_person_and_then_goes_on(
    db, handle, go, settle, outcome, calls
):
    tokens = []

    def send(payload, effect):
        tokens.append(effect.token)
        if len(tokens) == 1:
            db.clock.advance("61s")  # it has landed; the receipt never comes
            raise SystemExit
        return {"id": 8}

    async def body(run):
        return await run.effect("pay", {"amount": 5}, send)

    task = handle(body).submit(db)
    go()
    (effect,) = db.effects()
    assert (effect.state, db.task(task.id).state, len(tokens)) == ("unknown", "waiting", 1)
    db.reconcile(effect.id, outcome, {"id": 7} if outcome == "applied" else None)
    assert settle(task).result == ({"id": 7} if outcome == "applied" else {"id": 8})
    assert len(tokens) == calls


def test_a_receipt_that_comes_after_the_lease_was_lost_is_kept_as_evidence_and_used_by_the_next_holder(
    db, handle, go
):
    tokens = []

    def send(payload, effect):
        tokens.append(effect.token)
        db.clock.advance("61s")
        return {"id": len(tokens)}

    async def body(run):
        return await run.effect("pay", {"amount": 5}, send)

    task = handle(body).submit(db)
    go()
    (effect,) = db.effects()
    if effect.state == "succeeded":
        assert (db.result(task.id), effect.receipt) == ({"id": 1}, {"id": 1})
        assert [(one.token, one.outcome, one.receipt) for one in effect.evidence] == [
            (tokens[0], "applied", {"id": 1})
        ]
    else:  # an async handler is cancelled at the loss, and its function's answer comes after that
        assert (effect.state, db.task(task.id).state) == ("unknown", "waiting")
        (evidence,) = eventually(lambda: db.effects()[0].evidence)
        assert (evidence.token, evidence.receipt) == (tokens[0], {"id": 1})
    assert len(tokens) == 1


def test_an_effect_is_not_called_when_the_lease_is_over_by_its_start(db, handle, go, monkeypatch):
    send, real = Calls(), type(db.backend).call

    def call(self, ask, **how):
        answer = real(self, ask, **how)
        if type(ask).__name__ == "StartEffect" and not send and not late:
            late.append(True)
            db.clock.advance("59s")  # held by the store, and no longer trusted here
        return answer

    late = []
    monkeypatch.setattr(type(db.backend), "call", call)

    async def body(run):
        return await run.effect("pay", 1, send, contract=relet.Keyed(retention=DAY))

    task = handle(body).submit(db)
    go()
    db.clock.advance("1h")
    go()
    assert (db.result(task.id), len(send)) == (1, 1)
    assert send[0][1].attempt == 2


def test_a_start_whose_answer_was_lost_is_asked_for_again_and_makes_one_try(db, handle, settle, monkeypatch):
    real, lost = type(db.backend).call, []

    def call(self, ask, **how):
        answer = real(self, ask, **how)
        if type(ask).__name__ in ("StartEffect", "EndEffect") and lost.count(type(ask)) < 1:
            lost.append(type(ask))
            raise relet.OutcomeUnknown("the answer was lost")
        return answer

    monkeypatch.setattr(type(db.backend), "call", call)
    send = Calls()

    async def body(run):
        return await run.effect("pay", 1, send)

    task = handle(body).submit(db)
    assert (settle(task).result, len(send), len(lost)) == (1, 1, 2)
    assert send[0][1].repeated is False
    assert db.effects()[0].tries == 1


def test_an_effect_that_another_task_is_at_costs_no_attempt(db, handle, go):
    async def work(run):
        return await run.effect("charge", 12, lambda payload, effect: {"id": 7}, key="order-7")

    handle(work)
    db.submit("work", id="first")
    with db.claim(task_id="first").run() as first:

        def charge(payload, effect):
            db.submit("work", id="second")
            go()
            found = db.task("second")
            assert (found.state, found.attempt, found.failures) == ("ready", 1, 0)
            return {"id": 7}

        first.lease.complete(first.effect("charge", 12, charge, key="order-7"))
    db.clock.advance("2s")
    go()
    assert db.result("second") == {"id": 7}


@pytest.mark.parametrize(
    ("arguments", "named", "field"),
    [
        (("", 1, Calls()), {}, "name"), (("send", {1}, Calls()), {}, "payload"), (("send", 1, "text"), {}, "fn"),
        (("send", 1, Calls()), {"contract": "keyed"}, "contract"), (("send", 1, Calls()), {"timeout": 0}, "timeout"),
        (("send", 1, Calls()), {"contract": relet.Keyed}, "contract"), (("send", 1, Calls()), {"key": ""}, "key"),
    ],
    ids=["name", "payload", "fn", "contract", "timeout", "class without retention", "key"],
)  # fmt: skip
def test_bad_arguments_of_an_effect_are_refused_by_name_and_nothing_is_recorded(
    db, handle, settle, arguments, named, field
):
    fields = []

    async def body(run):
        with pytest.raises(relet.Invalid) as refused:
            await run.effect(*arguments, **named)
        fields.append(refused.value.detail["field"])

    assert settle(handle(body).submit(db)).state == "done"
    assert (fields, db.effects()) == ([field], [])


def test_a_coroutine_function_in_a_blocking_handler_is_refused_before_anything_is_recorded(db, app, settle):
    async def send(payload, effect):
        raise AssertionError("never")

    @app.task("work")
    def work(run):
        with pytest.raises(relet.Invalid, match="is a coroutine function"):
            run.effect("send", 1, send)

    assert settle(work.submit(db)).state == "done"
    assert db.effects() == []


def test_a_receipt_comes_back_as_it_was_annotated(db, handle, settle):
    crash, seen = Calls(RuntimeError), []

    def send(payload, effect) -> tuple[int, str]:
        return 7, "sent"

    async def body(run):
        seen.append(await run.effect("send", 1, send))
        seen.append(await run.effect("other", 1, lambda payload, effect: [7, "x"], returns=tuple[int, str]))
        crash()

    assert settle(handle(body).submit(db)).state == "done"
    assert seen == [(7, "sent"), (7, "x")] * 2


@pytest.mark.parametrize(
    "function", [lambda payload: 1, lambda a, b, c: 1, lambda *, payload: 1], ids=["1", "3", "named"]
)
def test_a_function_that_cannot_be_called_so_is_refused_before_anything_is_recorded(db, handle, go, function):
    async def body(run):
        with pytest.raises(relet.Invalid, match=r"^fn: .* cannot be called with \(payload, effect\)"):
            await run.effect("send", 1, function)
        return "goes on"

    task = handle(body).submit(db)
    go()
    assert (db.result(task.id), db.effects()) == ("goes on", [])
