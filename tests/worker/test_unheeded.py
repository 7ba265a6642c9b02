"""An order to stop that a handler swallows is told to whoever reads the log, and to the client's witness."""

import asyncio

import pytest

import relet
from relet.client.durable.sight import Saw
from tests.waiting import eventually


@pytest.fixture
def seen(relet_db):
    relet_db.witness = (sights := []).append
    return sights


def test_a_wait_that_is_swallowed_is_told_and_the_task_waits_all_the_same(relet_db, app, seen, caplog):
    @app.task("ask")
    def ask(run: relet.Run) -> str:
        try:
            return run.approval("publish").by
        except BaseException:
            return "nobody"

    task = relet_db.submit("ask")
    app.run_until_idle(relet_db)
    assert relet_db.task(task.id).state == "waiting"
    assert [(sight.what, sight.task_id) for sight in seen] == [(Saw.UNHEEDED, task.id)]
    assert "ask returned although it had been told to stop" in caplog.text
    assert "catch Exception instead" in caplog.text


@pytest.mark.parametrize("style", ["blocking", "awaiting"])
def test_a_loss_that_is_swallowed_is_told(relet_db, app, seen, style):
    @app.task("blocking")
    def blocking(run: relet.Run) -> str:
        relet_db.clock.advance("60s")
        try:
            run.save(1)
        except BaseException:
            return "went on"

    @app.task("awaiting")
    async def awaiting(run: relet.AsyncRun) -> str:
        relet_db.clock.advance("60s")
        try:
            await asyncio.sleep(15)
        except BaseException:
            return "went on"

    relet_db.submit(style)
    with app.worker(relet_db, style):
        eventually(lambda: seen)
    assert {sight.what for sight in seen} == {Saw.UNHEEDED}


def test_a_handler_that_returns_before_it_could_hear_is_not_blamed(relet_db, app, seen, caplog):
    @app.task("late")
    def late(run: relet.Run) -> str:
        relet_db.clock.advance("60s")
        run.lease.lost.wait(15)
        return "done, and no call of it has raised"

    relet_db.submit("late", max_attempts=1)
    app.run_until_idle(relet_db)
    assert seen == []
    assert "although" not in caplog.text


def test_an_effect_is_seen_with_its_key_and_what_it_answered(relet_db, app, seen):
    @app.task("mail")
    def mail(run: relet.Run) -> str:
        return run.effect("mail", {"to": "ann"}, lambda payload, effect: effect.key)

    task = relet_db.submit("mail")
    app.run_until_idle(relet_db)
    key = relet_db.result(task.id)
    assert [(sight.what, sight.key, sight.payload, sight.receipt) for sight in seen] == [
        (Saw.CALLED, key, '{"to":"ann"}', None), (Saw.ANSWERED, key, '{"to":"ann"}', f'"{key}"'),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["blocking", "group"])
def test_an_error_beside_a_wait_is_in_the_log_with_its_traceback(relet_db, app, caplog, kind):
    @app.task("blocking")
    def blocking(run: relet.Run) -> None:
        try:
            run.approval("publish")
        finally:
            raise ValueError("a bug in the cleaning up")

    async def beside() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("a bug in the cleaning up")

    @app.task("group")
    async def group(run: relet.AsyncRun) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(beside())
            tasks.create_task(run.approval("publish"))

    task = relet_db.submit(kind)
    app.run_until_idle(relet_db)
    assert relet_db.task(task.id).state == "waiting"
    (record,) = [one for one in caplog.records if one.getMessage().startswith("raised beside its wait")]
    assert (record.levelname, record.task) == ("WARNING", task.id)
    assert "a bug in the cleaning up" in caplog.text
    assert "in beside" in caplog.text or "in blocking" in caplog.text


@pytest.mark.parametrize("kind", ["blocking", "awaiting", "group"])
def test_a_wait_alone_says_nothing_in_the_log(relet_db, app, caplog, kind):
    @app.task("blocking")
    def blocking(run: relet.Run) -> None:
        run.approval("publish")

    @app.task("awaiting")
    async def awaiting(run: relet.AsyncRun) -> None:
        await run.approval("publish")

    @app.task("group")
    async def group(run: relet.AsyncRun) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.Event().wait())
            tasks.create_task(run.approval("publish"))

    task = relet_db.submit(kind)
    app.run_until_idle(relet_db)
    assert relet_db.task(task.id).state == "waiting"
    assert [one for one in caplog.records if one.levelname == "WARNING"] == []
