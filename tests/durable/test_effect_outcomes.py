"""What became of a try: certainly nothing, nobody knows, or whatever a look at the other side finds."""

import asyncio

import pytest

import relet
from relet.client.durable.effects import LOOKS_MAX
from tests.durable.contracts import ALL, REPEATABLE, named, state_of
from tests.durable.styles import Calls
from tests.waiting import Gate


@pytest.mark.parametrize("contract", ALL, ids=named)
def test_id_10_what_certainly_did_not_apply_is_tried_again(db, handle, settle, contract):
    send = Calls(relet.NotApplied("refused: no funds"), {"id": 7})

    async def body(run):
        return await run.effect("send", 1, send, contract=contract)

    task = handle(body).submit(db)
    assert settle(task).result == {"id": 7}
    assert len(send) == 2
    retried = next(one for one in db.history(task.id) if one.kind == "retried")
    assert retried.detail["error"] == "NotApplied: refused: no funds"
    assert [one.detail["outcome"] for one in db.history(task.id) if one.kind == "effect_ended"] == [
        "failed", "succeeded",
    ]  # fmt: skip


def test_id_10_a_handler_may_go_another_way_when_it_certainly_did_not_apply(db, handle, settle):
    async def body(run):
        try:
            await run.effect("send", 1, Calls(relet.NotApplied("no funds")))
        except relet.NotApplied as refused:
            return str(refused)

    assert settle(handle(body).submit(db)).result == "no funds"
    assert state_of(db) == "failed"


UNKNOWN = {
    "an exception": OSError("reset"),
    "a timeout": TimeoutError("no answer"),
    "no JSON": {1, 2},
    "NaN": float("nan"),
}


@pytest.mark.parametrize("outcome", list(UNKNOWN))
def test_id_10_an_opaque_effect_that_raised_or_whose_answer_is_unreadable_waits_for_a_person(
    db, handle, settle, outcome
):
    send = Calls(UNKNOWN[outcome])

    async def body(run):
        try:
            return await run.effect("send", 1, send)
        except Exception as swallowed:
            return f"swallowed {swallowed!r}"

    task = handle(body).submit(db)
    waiting = settle(task)
    (effect,) = db.effects(state="unknown")
    assert (waiting.state, waiting.waiting_for, len(send)) == ("waiting", f"effect:{effect.id}", 1)
    assert effect.error
    db.clock.advance("30d")
    assert settle(task).state == "waiting"
    db.reconcile(effect.id, "applied", {"id": 7}, by="ann")
    assert (settle(task).result, len(send)) == ({"id": 7}, 1)
    assert db.effects()[0].reconciled_by == "ann"


@pytest.mark.parametrize("outcome", list(UNKNOWN))
@pytest.mark.parametrize("contract", REPEATABLE, ids=named)
def test_id_10_where_the_contract_allows_it_an_unknown_try_is_repeated_by_the_next_attempt(
    db, handle, settle, contract, outcome
):
    keys = []

    def send(payload, effect):
        keys.append((effect.key, effect.attempt, effect.repeated))
        if len(keys) > 1:
            return {"id": 7}
        if isinstance(UNKNOWN[outcome], Exception):
            raise UNKNOWN[outcome]
        return UNKNOWN[outcome]

    async def body(run):
        return await run.effect("send", 1, send, contract=contract)

    task = handle(body).submit(db)
    done = settle(task)
    assert (done.result, done.failures) == ({"id": 7}, 1)
    assert [again for _, *again in keys] == [[1, False], [2, True]]
    assert len({key for key, *_ in keys}) == 1


@pytest.mark.parametrize("contract", REPEATABLE, ids=named)
def test_a_repeatable_effect_that_never_succeeds_ends_with_its_attempts_and_stays_listed(
    db, handle, settle, contract
):
    send = Calls(*[OSError("reset")] * 9)

    async def body(run):
        await run.effect("send", 1, send, contract=contract)

    failed = settle(handle(body, retry=relet.RetryPolicy(max_attempts=3)).submit(db))
    assert (failed.state, len(send), state_of(db)) == ("failed", 3, "unknown")


def test_a_keyed_effect_is_not_repeated_once_the_other_side_may_have_forgotten_its_key(db, handle, go, settle):
    send = Calls(OSError("reset"), {"id": 7})

    async def body(run):
        return await run.effect("send", 1, send, contract=relet.Keyed(retention="10h"))

    task = handle(body).submit(db)
    go()
    db.clock.advance("9h")  # a tenth of what was promised is not relied on
    assert settle(task).state == "waiting"
    assert len(send) == 1
    db.reconcile(db.effects()[0].id, "not_applied")
    assert (settle(task).result, len(send)) == ({"id": 7}, 2)


def test_a_try_that_takes_too_long_is_unknown(db, app, settle, style):
    left = Gate()

    async def hang(payload, effect):
        await asyncio.Event().wait()

    @app.task("work")
    async def awaiting(run):
        await run.effect("send", 1, hang, timeout=0.02)

    @app.task("blocking")
    def blocking(run):
        run.effect("send", 1, lambda payload, effect: left.pass_through(), timeout=0.02)

    task = (awaiting if style == "async def" else blocking).submit(db)
    assert settle(task).state == "waiting"
    left.set()
    assert state_of(db) == "unknown"
    assert "TimeoutError" in db.effects()[0].error


@pytest.mark.parametrize("contract", REPEATABLE, ids=named)
def test_a_repeated_try_that_did_not_apply_says_nothing_of_the_unknown_one_before_it(db, handle, settle, contract):
    """The first may have landed: it is neither settled as failed, nor taken for the first try the next time."""
    send, repeated = Calls(OSError("reset"), relet.NotApplied("refused"), {"id": 7}), []

    async def body(run):
        def told(payload, effect):
            repeated.append((effect.attempt, effect.repeated))
            return send()

        return await run.effect("send", 1, told, contract=contract)

    task = handle(body).submit(db)
    assert settle(task).result == {"id": 7}
    assert repeated == [(1, False), (2, True), (3, True)]
    assert db.task(task.id).failures == 2  # with their backoff: the store was never away
    assert [one.detail["outcome"] for one in db.history(task.id) if one.kind == "effect_ended"] == [
        "unknown", "unknown", "succeeded",
    ]  # fmt: skip


def test_its_retention_is_counted_from_the_unknown_try_and_not_from_a_refused_one_after_it(db, handle, go, settle):
    send = Calls(OSError("reset"), relet.NotApplied("refused"), {"id": 7})

    async def body(run):
        return await run.effect("send", 1, send, contract=relet.Keyed(retention="10h"))

    task = handle(body, retry=relet.RetryPolicy(base="5h", cap="5h", max_attempts=9)).submit(db)
    for _ in range(2):
        go()
        db.clock.advance("6h")  # backoff and jitter
    assert settle(task).state == "waiting"
    assert len(send) == 2


def test_a_handler_that_swallows_such_a_refusal_and_returns_waits_until_somebody_knows(db, handle, settle):
    send, returned = Calls(OSError("reset"), relet.NotApplied("refused")), []

    async def body(run):
        try:
            return await run.effect("send", 1, send, contract=relet.Natural())
        except relet.NotApplied:
            return "taken for certainly not done"
        except relet.OutcomeUnknown as unknown:
            returned.append((unknown.code, unknown.detail["effect"] == db.effects()[0].id))
            return "not sent, as it seems"

    task = handle(body).submit(db)
    assert settle(task).state == "waiting"
    assert (returned, state_of(db)) == ([("RELET-EFFECT-UNKNOWN", True)], "unknown")
    db.reconcile(db.effects()[0].id, "applied", "sent after all")
    assert settle(task).result == "sent after all"


def test_after_a_person_said_not_applied_a_try_is_a_first_one_again(db, handle, settle):
    repeated, send = [], Calls(OSError("reset"), relet.NotApplied("refused"), {"id": 7})

    async def body(run):
        def told(payload, effect):
            repeated.append((effect.attempt, effect.repeated))
            return send()

        return await run.effect("send", 1, told)

    task = handle(body).submit(db)
    settle(task)
    db.reconcile(db.effects()[0].id, "not_applied")
    assert settle(task).result == {"id": 7}
    assert repeated == [(1, False), (2, False), (3, False)]


# -- looking -----------------------------------------------------------------------------------------------------


def test_a_queryable_effect_is_looked_up_by_its_key_and_what_is_found_is_the_receipt(db, handle, settle):
    looked = []

    def look(payload, effect):
        looked.append((payload, effect.key))
        return {"id": 7}

    send = Calls(OSError("reset"))

    async def body(run):
        return await run.effect("send", {"n": 1}, send, contract=relet.Queryable(look, visibility_delay="1h"))

    task = handle(body).submit(db)
    done = settle(task)
    assert (done.result, done.failures, len(send)) == ({"id": 7}, 0, 1)
    assert looked == [({"n": 1}, send[0][1].key)]


def test_what_is_not_found_counts_once_the_last_try_can_no_longer_arrive(db, handle, go, settle):
    look, send = Calls(None, None, None), Calls(OSError("reset"), {"id": 7})
    contract = relet.Queryable(look, visibility_delay="5m", max_in_flight="1m")

    async def body(run):
        return await run.effect("send", 1, send, contract=contract, timeout="1m")

    task = handle(body).submit(db)
    go()
    assert (db.task(task.id).state, len(look), len(send)) == ("waiting", 1, 1)
    db.clock.advance("6m59s")
    assert go() == 0
    db.clock.advance("1s")
    db.clock.advance("1ms")
    go()
    assert (db.result(task.id), len(look), len(send)) == ({"id": 7}, 2, 2)


def test_found_at_the_second_look_it_is_not_sent_again(db, handle, settle):
    look, send = Calls(None, {"id": 7}), Calls(OSError("reset"))

    async def body(run):
        return await run.effect("send", 1, send, contract=relet.Queryable(look), timeout="1m")

    task = handle(body).submit(db)
    assert settle(task).state == "waiting"
    db.clock.advance("2m")
    assert (settle(task).result, len(send)) == ({"id": 7}, 1)


def test_a_look_that_is_early_by_the_clock_of_the_store_is_made_again_a_little_later(db, handle, settle):
    looks = []

    def look(payload, effect):
        looks.append(effect.attempt)
        if len(looks) == 3:  # until then the store's clock has not moved
            db.clock.advance("1s")

    send = Calls(OSError("reset"), {"id": 7})

    async def body(run):
        return await run.effect("send", 1, send, contract=relet.Queryable(look), timeout=0.02)

    task = handle(body).submit(db)
    done = settle(task)
    assert (done.result, done.failures, looks) == ({"id": 7}, 0, [1, 1, 1])


def test_looks_that_are_always_early_give_the_lease_back(db, handle, settle):
    look, send = Calls(*[None] * 9), Calls(OSError("reset"), {"id": 7})

    async def body(run):
        return await run.effect("send", 1, send, contract=relet.Queryable(look), timeout=0.02)

    task = handle(body).submit(db)
    waiting = settle(task)
    assert (waiting.state, len(look), waiting.failures) == ("waiting", LOOKS_MAX, 0)
    db.clock.advance("1s")
    assert settle(task).result == {"id": 7}


def test_a_look_that_fails_is_made_again_and_nothing_is_sent(db, handle, settle):
    look, send = Calls(OSError("no answer"), {"id": 7}), Calls(OSError("reset"))

    async def body(run):
        return await run.effect("send", 1, send, contract=relet.Queryable(look))

    task = handle(body).submit(db)
    assert (settle(task).result, len(look), len(send)) == ({"id": 7}, 2, 1)


@pytest.mark.parametrize(
    "contract", [relet.Opaque, lambda check: relet.Keyed("1ms", check=check)], ids=["opaque", "keyed"]
)
def test_a_check_is_asked_where_repeating_is_not_allowed(db, handle, settle, contract):
    look, send = Calls({"id": 7}), Calls(OSError("reset"))
    made = contract(check=look)

    async def body(run):
        return await run.effect("send", 1, send, contract=made)

    task = handle(body).submit(db)
    assert (settle(task).result, len(look), len(send)) == ({"id": 7}, 1, 1)
