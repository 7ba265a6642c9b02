"""Steps: a call is made once, its result is kept, and a later holder goes on from there."""

import asyncio
import functools
import threading

import pytest

import relet
from relet.core.rules.step import CHANGED
from tests.durable.styles import Calls


def kinds(db, task):
    return [str(event.kind) for event in db.history(task.id)]


def test_a_later_holder_gets_the_kept_result_and_calls_nothing_again(db, handle, settle):
    search, fail_once = Calls({"found": "grain"}), Calls(RuntimeError("after the step"), None)

    async def body(run):
        found = await run.step("search", search, "grain")
        fail_once()
        return found

    task = handle(body).submit(db)
    assert settle(task).result == {"found": "grain"}
    assert (len(search), len(fail_once)) == (1, 2)
    (step,) = db.steps(task.id)
    assert (step.name, step.n, step.key, step.value) == ("search", 1, None, {"found": "grain"})
    assert step.token < db.task(task.id).token


def test_calls_of_one_name_in_a_loop_number_themselves(db, handle, settle):
    square = Calls(*[lambda n: n * n] * 4, RuntimeError("at the fifth"), lambda n: n * n)

    async def body(run):
        return [await run.step("square", square, n) for n in range(5)]

    task = handle(body).submit(db)
    assert settle(task).result == [0, 1, 4, 9, 16]
    assert [args[0] for args in square] == [0, 1, 2, 3, 4, 4]
    assert [step.n for step in db.steps(task.id)] == [1, 2, 3, 4, 5]


def test_steps_with_keys_are_found_in_any_order(db, handle, settle):
    look, fail_once = Calls(*[lambda page: page.upper()] * 3), Calls(RuntimeError, None)
    order = [["a", "b", "c"], ["c", "a", "b"]]

    async def body(run):
        found = [await run.step("look", look, page, key=page) for page in order[run.attempt - 1]]
        fail_once()
        return found

    task = handle(body).submit(db)
    assert settle(task).result == ["C", "A", "B"]
    assert len(look) == 3
    assert {step.key for step in db.steps(task.id)} == {"a", "b", "c"}


def test_a_key_that_is_used_again_within_one_run_gives_the_kept_result(db, handle, settle):
    look = Calls("small", "x" * 40_000)

    async def body(run):
        small = [await run.step("look", look, key="a"), await run.step("look", look, key="a")]
        large = [await run.step("look", look, key="b"), await run.step("look", look, key="b")]
        return [*small, *map(len, large)]

    assert settle(handle(body).submit(db)).result == ["small", "small", 40_000, 40_000]
    assert len(look) == 2


def test_a_name_that_was_kept_for_other_arguments_fails_the_task_for_good_with_the_way_out(db, handle, settle):
    step, fail_once = Calls(), Calls(RuntimeError)

    async def body(run):
        await run.step("search", step, "before" if run.attempt == 1 else "after")
        fail_once()

    task = handle(body).submit(db)
    failed = settle(task)
    assert (failed.state, failed.code, failed.attempt) == ("failed", CHANGED, 3)
    for words in ("step 'search'", "call 1 of it", "other arguments", "another name", f"relet steps {task.id}"):
        assert words in failed.error
    assert len(step) == 1


def test_the_same_refusal_reaches_a_handler_that_asks_for_it(db, handle, settle):
    refused = []

    async def body(run):
        await run.step("search", Calls(), "one", key="k")
        try:
            await run.step("search", Calls(), "two", key="k")
        except relet.Conflict as conflict:
            refused.append(conflict)

    assert settle(handle(body).submit(db)).state == "done"
    assert refused[0].code == CHANGED
    assert "key 'k'" in str(refused[0])


def test_arguments_without_a_json_form_stay_out_of_the_fingerprint(db, handle, settle):
    step, fail_once = Calls(), Calls(RuntimeError)

    async def body(run):
        found = await run.step("search", step, object(), "same")
        fail_once()
        return found

    assert settle(handle(body).submit(db)).result == 1
    assert len(step) == 1


def test_concurrent_calls_of_one_name_without_keys_are_refused_and_with_keys_are_fine(db, app, settle):
    refused, looked = [], []

    async def look(page):
        await asyncio.sleep(0)
        looked.append(page)
        return page

    @app.task("work")
    async def work(run):
        found = await asyncio.gather(*(run.step("look", look, page) for page in "ab"), return_exceptions=True)
        refused.extend(one for one in found if isinstance(one, relet.Invalid))
        return await asyncio.gather(*(run.step("look", look, page, key=page) for page in "cdef"))

    assert settle(work.submit(db)).result == list("cdef")
    (invalid,) = refused
    assert invalid.detail["field"] == "key"
    assert "'look' is under way" in str(invalid)
    assert looked[1:] == list("cdef")


def test_the_same_key_twice_at_once_is_refused(db, app, settle):
    @app.task("work")
    async def work(run):
        found = await asyncio.gather(*(run.step("look", Calls(), key="a") for _ in "12"), return_exceptions=True)
        return sorted(type(one).__name__ for one in found)

    assert settle(work.submit(db)).result == ["Invalid", "int"]


def test_threads_of_one_blocking_run_keep_their_steps_by_key(db, app, settle):
    @app.task("work")
    def work(run):
        found = {}

        def look(page):
            found[page] = run.step("look", str.upper, page, key=page)

        threads = [threading.Thread(target=look, args=(page,)) for page in "abcdefgh"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    task = work.submit(db)
    assert settle(task).result == {page: page.upper() for page in "abcdefgh"}
    assert len(db.steps(task.id)) == 8


def test_an_async_function_is_awaited_and_a_plain_one_runs_off_the_loop_with_the_context(db, app, settle):
    seen = {}

    async def awaited():
        seen["awaited"] = (relet.current_run(), threading.current_thread())

    def plain():
        seen["plain"] = (relet.current_run(), threading.current_thread())

    @app.task("work")
    async def work(run):
        seen["handler"] = (run, threading.current_thread())
        await run.step("awaited", awaited)
        await run.step("plain", plain)
        await run.step("object", AsyncCall(seen))

    assert settle(work.submit(db)).state == "done"
    assert seen["awaited"] == seen["object"] == seen["handler"]
    assert seen["plain"][0] is seen["handler"][0]
    assert seen["plain"][1] is not seen["handler"][1]


class AsyncCall:
    """An object whose call is awaited."""

    def __init__(self, seen):
        self.seen = seen

    async def __call__(self):
        self.seen["object"] = (relet.current_run(), threading.current_thread())


@pytest.mark.parametrize("make", [lambda look: look, functools.partial], ids=["itself", "partial"])
def test_a_coroutine_function_in_a_blocking_handler_is_refused_before_it_runs(db, app, settle, make):
    async def look():
        raise AssertionError("never")

    @app.task("work", retry=relet.RetryPolicy(max_attempts=1))
    def work(run):
        run.step("look", make(look))

    failed = settle(work.submit(db))
    assert failed.state == "failed"
    assert "is a coroutine function; make the handler `async def`" in failed.error


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("", Calls()), "name"), ((7, Calls()), "name"), (("look", "text"), "fn"), (("a\nb", Calls()), "name"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_by_name_and_keep_nothing(db, handle, settle, arguments, field):
    fields = []

    async def body(run):
        with pytest.raises(relet.Invalid) as refused:
            await run.step(*arguments)
        fields.append(refused.value.detail["field"])

    task = handle(body).submit(db)
    assert settle(task).state == "done"
    assert fields == [field]
    assert db.steps(task.id) == []


@pytest.mark.parametrize(
    ("named", "field"), [({"key": ""}, "key"), ({"timeout": 0}, "timeout"), ({"retry": 3}, "retry")]
)
def test_bad_options_are_refused_by_name(db, handle, settle, named, field):
    fields = []

    async def body(run):
        with pytest.raises(relet.Invalid) as refused:
            await run.step("look", Calls(), **named)
        fields.append(refused.value.detail["field"])

    assert settle(handle(body).submit(db)).state == "done"
    assert fields == [field]


def test_what_was_skipped_and_what_that_saved_is_there_to_see(db, handle, settle):
    seen, fail_once = {}, Calls(RuntimeError)

    def look():
        relet.current_run().spent(0.25)
        relet.current_run().spent(1)
        return "found"

    async def body(run):
        await run.step("look", look)
        await run.step("free", Calls("free"))
        fail_once()
        seen.update(skipped=run.skipped, saving=run.lease.belief.grant.saving)

    task = handle(body).submit(db)
    settle(task)
    assert (seen["skipped"].steps, seen["skipped"].cost) == (2, 1.25)
    assert seen["saving"] == seen["skipped"]
    claimed = [event for event in db.history(task.id) if event.kind == "claimed"]
    assert "saved" not in claimed[0].detail
    assert (claimed[1].detail["saved"]["steps"], claimed[1].detail["saved"]["cost"]) == (2, 1.25)
    assert [step.cost for step in db.steps(task.id)] == [None, 1.25]


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), "much", True])
def test_a_cost_that_is_no_amount_is_refused_and_outside_of_a_step_every_one_is(db, handle, settle, cost):
    fields = []

    async def body(run):
        def look():
            with pytest.raises(relet.Invalid) as refused:
                run.spent(cost)
            fields.append(refused.value.detail["field"])

        await run.step("look", look)
        with pytest.raises(relet.Invalid, match="from within a step"):
            run.spent(1)

    assert settle(handle(body).submit(db)).state == "done"
    assert fields == ["cost"]


def test_a_step_whose_store_is_away_for_a_moment_is_kept_when_it_answers(db, handle, settle, monkeypatch):
    real, fails = type(db.backend).call, [relet.Unavailable("busy"), relet.OutcomeUnknown("no answer")]

    def call(self, ask, **how):
        if type(ask).__name__ == "KeepStep" and fails:
            raise fails.pop()
        return real(self, ask, **how)

    monkeypatch.setattr(type(db.backend), "call", call)
    step = Calls()

    async def body(run):
        return await run.step("costly", step)

    task = handle(body).submit(db)
    assert (settle(task).result, len(step), fails) == (1, 1, [])
    assert kinds(db, task).count("stepped") == 1
