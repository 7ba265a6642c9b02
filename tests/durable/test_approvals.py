"""A question to a person: wherever a handler asks it, it is unwound, and the answer is found by whoever goes on."""

import threading

import pytest

import relet
from tests.durable.styles import Calls


def test_an_answer_is_found_by_the_next_holder_and_costs_no_attempt(db, handle, asked, go):
    seen = []

    async def body(run):
        found = await run.approval("publish", {"draft": 1})
        seen.append((found.accepted, found.by, found.kind))
        return found.value

    task = handle(body).submit(db)
    wait = asked(task)
    assert (wait.name, wait.n, wait.ask, wait.open) == ("publish", 1, {"draft": 1}, True)
    db.decide(task.id, "publish", "edit", {"draft": 2}, by="ann")
    go()
    done = db.task(task.id)
    assert (done.result, done.attempt, done.losses, done.failures) == ({"draft": 2}, 1, 0, 0)
    assert done.token > wait.token
    assert seen == [(True, "ann", "edit")]


@pytest.mark.parametrize(("kind", "accepted"), [("accept", True), ("deny", False), ("ignore", False)])
def test_a_decision_stays_readable_for_every_later_run(db, handle, asked, settle, kind, accepted):
    fail, seen = Calls(RuntimeError, RuntimeError, None), []

    async def body(run):
        seen.append((await run.approval("publish")).accepted)
        fail()

    task = handle(body).submit(db)
    asked(task)
    db.decide(task.id, "publish", kind)
    assert settle(task).state == "done"
    assert seen == [accepted] * 3
    assert len([one for one in db.history(task.id) if one.kind == "parked"]) == 1


def test_an_approval_within_except_exception_is_not_swallowed(db, handle, asked, go):
    swallowed = []

    async def body(run):
        try:
            Calls(OSError("the other way"))()
        except Exception:
            try:
                return (await run.approval("other way")).accepted
            except Exception as wrong:
                swallowed.append(wrong)

    task = handle(body).submit(db)
    asked(task)
    db.decide(task.id, "other way", "accept")
    go()
    assert (db.result(task.id), swallowed) == (True, [])


def test_a_bare_except_swallows_it_and_every_further_call_raises_it_again(db, handle, asked, go):
    raised, after = [], Calls()

    async def body(run):
        for verb in (
            lambda: run.approval("publish"), lambda: run.save(1), lambda: run.step("a", after),
            lambda: run.effect("b", 1, after), lambda: run.approval("again"), run.check,
            lambda: run.progress("on"), lambda: run.submit("child", "work"), run.load,
            lambda: run.attach("a.txt", b"a"), lambda: run.open("a.txt"), lambda: run.sleep(1),
            lambda: run.receive("go"),
        ):  # fmt: skip
            try:
                await verb()
            except:  # noqa: E722 - the point
                raised.append(1)
            else:
                return f"done at {len(raised)}"
        return "a result nobody may take"

    task = handle(body).submit(db)
    asked(task)
    assert (len(raised), after) == (13, [])
    assert db.steps(task.id) == []
    assert db.effects() == []
    assert db.checkpoints(task.id) == []
    assert db.task(task.id).result is None
    db.decide(task.id, "publish", "accept")
    raised.clear()
    go()
    assert (db.result(task.id), raised) == ("done at 0", [])


def test_what_is_raised_again_is_parked_itself(db, handle, asked):
    raised = []

    async def body(run):
        try:
            await run.approval("publish")
        finally:
            try:
                await run.save("too late")
            except relet.Parked as parked:
                raised.append((parked.task_id, parked.name, run.parked is parked))

    task = handle(body).submit(db)
    asked(task)
    assert raised == [(task.id, "publish", True)]


def test_an_exception_after_being_parked_does_not_fail_the_attempt(db, handle, asked):
    async def body(run):
        try:
            await run.approval("publish")
        except BaseException as parked:
            raise ValueError("a handler that wraps everything") from parked

    task = handle(body).submit(db)
    asked(task)
    assert (db.task(task.id).error, db.task(task.id).failures) == (None, 0)


def test_a_handler_whose_code_before_the_wait_has_changed_finds_its_answer(db, handle, asked, go):
    new_code, seen = [], []

    async def body(run):
        if new_code:
            await run.step("added later", lambda: "added")
            await run.progress("another way to the same question")
        seen.append((await run.approval("publish", {"draft": "a"})).accepted)

    task = handle(body).submit(db)
    asked(task)
    new_code.append(True)
    db.decide(task.id, "publish", "accept")
    go()
    assert (db.task(task.id).state, seen) == ("done", [True])


def test_another_ask_is_another_question_and_the_old_answer_does_not_count(db, handle, asked, go):
    drafts = iter(["first draft", "second draft", "second draft"])
    accepted = []

    async def body(run):
        accepted.append((await run.approval("publish", {"draft": next(drafts)})).value)

    task = handle(body).submit(db)
    first = asked(task)
    db.decide(task.id, "publish", "respond", "to the first")
    second = asked(task)
    assert (second.ask, second.n, second.digest != first.digest) == ({"draft": "second draft"}, 1, True)
    with pytest.raises(relet.Conflict) as refused:
        db.decide(task.id, "publish", "accept", digest=first.digest)
    assert refused.value.code == "RELET-OTHER-QUESTION"
    db.decide(task.id, "publish", "respond", "to the second", digest=second.digest)
    go()
    assert accepted == ["to the second"]


def test_the_order_of_keys_in_an_ask_makes_no_other_question(db, handle, asked, go):
    asks = iter([{"a": 1, "b": 2}, {"b": 2, "a": 1}])

    async def body(run):
        return (await run.approval("publish", next(asks))).accepted

    task = handle(body).submit(db)
    asked(task)
    db.decide(task.id, "publish", "accept")
    go()
    assert db.result(task.id) is True


def test_ap_05_one_approval_is_for_one_action_of_one_task_and_for_one_occurrence(db, handle, asked, go):
    async def body(run):
        return [(await run.approval("delete", {"id": number})).by for number in (5, 9, 5)]

    handler = handle(body)
    task, other = handler.submit(db), handler.submit(db)
    for n, number, by in ((1, 5, "ann"), (2, 9, "bea"), (3, 5, "cyd")):
        wait = asked(task)
        assert (wait.n, wait.ask) == (n, {"id": number})
        db.decide(task.id, "delete", "accept", by=by)
        assert asked(other).n == 1
    go()
    assert db.result(task.id) == ["ann", "bea", "cyd"]


def test_ap_09_many_answers_at_once_make_one_decision_and_each_gets_to_know_it(db, handle, asked, go):
    async def body(run):
        return (await run.approval("publish")).by

    task = handle(body).submit(db)
    asked(task)
    together, said = threading.Barrier(8, timeout=15), []

    def click(number):
        together.wait()
        for _ in range(2):
            try:
                said.append((number, db.decide(task.id, "publish", "accept", by=f"user-{number}").by))
            except relet.Conflict as conflict:
                said.append((conflict.code, conflict.detail["by"]))

    threads = [threading.Thread(target=click, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    go()
    winner = db.result(task.id)
    assert {by for _, by in said} == {winner}
    assert len([1 for who, _ in said if who == "RELET-ALREADY-DECIDED"]) == 14
    assert len([1 for who, _ in said if who == int(winner.removeprefix("user-"))]) == 2


def test_ap_09_a_used_answer_stays_used_after_a_crash_right_behind_it(db, handle, asked, settle):
    seen = []

    async def body(run):
        seen.append((await run.approval("publish")).by)
        if len(seen) == 1:
            db.clock.advance("61s")  # the holder dies here, as far as anybody can see
            await run.save("never")
        return "published"

    task = handle(body).submit(db)
    asked(task)
    db.decide(task.id, "publish", "accept", by="ann")
    assert settle(task).result == "published"
    assert seen == ["ann", "ann"]
    assert [(one.n, one.decision.by, one.open) for one in db.waits(task.id)] == [(1, "ann", False)]


def test_ap_08_after_the_answer_earlier_effects_are_not_repeated_and_nothing_is_asked_twice(
    db, handle, asked, settle
):
    first, second, crash = Calls({"id": 1}), Calls({"id": 2}), Calls(RuntimeError, None)

    async def body(run):
        one = await run.effect("first", {"n": 1}, first)
        await run.approval("go on", one)
        crash()
        return [one, await run.effect("second", {"n": 2}, second)]

    task = handle(body).submit(db)
    asked(task)
    db.decide(task.id, "go on", "accept")
    assert settle(task).result == [{"id": 1}, {"id": 2}]
    assert (len(first), len(second), len(crash)) == (1, 1, 2)
    assert [str(one.kind) for one in db.history(task.id)].count("parked") == 1
