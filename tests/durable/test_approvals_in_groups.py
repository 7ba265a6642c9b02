"""A question asked within task groups and gathers: what runs beside it is unwound or refused, whatever it does."""

import asyncio
import threading

import relet
from tests.durable.styles import Calls


def test_an_approval_within_a_task_group_unwinds_the_group_and_its_siblings(db, app, asked, go):
    ended = []

    async def sibling():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("sibling")

    @app.task("work")
    async def work(run):
        async with asyncio.TaskGroup() as group:
            other = group.create_task(sibling()) if not ended else None
            answer = group.create_task(run.approval("publish"))
        assert other is None
        return answer.result().accepted

    task = work.submit(db)
    asked(task)
    assert ended == ["sibling"]
    db.decide(task.id, "publish", "accept")
    go()
    assert db.result(task.id) is True


def test_an_approval_within_nested_groups_and_except_star_unwinds_all_of_them(db, app, asked, go):
    swallowed = []

    @app.task("work")
    async def work(run):
        try:
            async with asyncio.TaskGroup() as outer:
                outer.create_task(inner(run))
        except* Exception as group:
            swallowed.extend(group.exceptions)

    async def inner(run):
        async with asyncio.TaskGroup() as group:
            group.create_task(deepest(run))

    async def deepest(run):
        try:
            await run.approval("publish")
        except Exception as wrong:
            swallowed.append(wrong)

    task = work.submit(db)
    asked(task)
    db.decide(task.id, "publish", "accept")
    go()
    assert (db.task(task.id).state, swallowed) == ("done", [])


def test_a_sibling_that_fails_at_the_same_time_does_not_fail_the_attempt(db, app, asked):
    @app.task("work")
    async def work(run):
        async with asyncio.TaskGroup() as group:
            group.create_task(run.approval("publish"))
            group.create_task(fails_once_cancelled())

    async def fails_once_cancelled():
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("while it was cancelled")

    task = work.submit(db)
    asked(task)
    assert (db.task(task.id).error, db.task(task.id).failures) == (None, 0)


def test_a_group_that_is_cancelled_while_it_parks_leaves_the_task_parked_or_failed_and_never_both(db, app, settle):
    @app.task("work")
    async def work(run):
        async with asyncio.TaskGroup() as group:
            group.create_task(run.approval("publish"))
            group.create_task(fails(run))

    async def fails(run):
        if run.attempt == 1:
            await asyncio.sleep(0)
            raise ValueError("before the question is asked")

    task = work.submit(db)
    assert settle(task).state == "waiting"
    ends = [str(one.kind) for one in db.history(task.id)]
    assert ends[-1] == "parked"
    assert ends.count("retried") + ends.count("parked") == ends.count("claimed")


def test_two_questions_at_once_are_asked_one_after_the_other(db, app, asked, go):
    @app.task("work")
    async def work(run):
        async with asyncio.TaskGroup() as group:
            both = [group.create_task(run.approval(name)) for name in ("first", "second")]
        return [one.result().value for one in both]

    task = work.submit(db)
    for value in (1, 2):
        db.decide(task.id, asked(task).name, "respond", value)
    go()
    assert sorted(db.result(task.id)) == [1, 2]


def test_under_gather_the_rest_is_refused_at_its_next_call(db, app, asked):
    parked, refused = asyncio.Event(), []
    ended = threading.Event()

    @app.task("work")
    async def work(run):
        await asyncio.gather(ask(run), goes_on(run))

    async def ask(run):
        try:
            await run.approval("publish")
        finally:
            parked.set()

    async def goes_on(run):
        await parked.wait()
        try:
            await run.step("late", Calls())
        except relet.Parked:
            refused.append(True)
        finally:
            ended.set()

    task = work.submit(db)
    asked(task)
    assert ended.wait(15)
    assert refused == [True]
    assert db.steps(task.id) == []


def test_gather_with_returned_exceptions_cannot_hide_it(db, app, asked):
    @app.task("work")
    async def work(run):
        return [str(one) for one in await asyncio.gather(run.approval("publish"), return_exceptions=True)]

    task = work.submit(db)
    asked(task)
    assert db.task(task.id).result is None
