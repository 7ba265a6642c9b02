"""`lease.run()`: durable work under any lease, without an App; blocking and awaiting blocks end alike."""

import asyncio

import pytest

import relet
from relet.client.awaiting import AsyncClient
from relet.core.drive import drive
from tests.durable.styles import Awaited, Calls


class Embedded:
    """Claim and work in a block, in either style, with one text for both."""

    def __init__(self, db, style):
        self._db = db
        self._awaits = style == "async def"

    def __call__(self, body):
        """What the block's body returned; None when the block was left early. Raises what the block raises."""
        return asyncio.run(self._awaiting(body)) if self._awaits else self._blocking(body)

    def _blocking(self, body):
        lease, result = self._db.claim("work"), None
        with lease.run() as run:
            assert relet.current_run() is run
            result = drive(body(Awaited(run)))
            lease.complete(result)
        assert relet.current_run() is None
        return result

    async def _awaiting(self, body):
        client = AsyncClient(self._db)
        lease, result = await client.claim("work"), None
        async with lease.run() as run:
            assert relet.current_run() is run
            result = await body(run)
            await lease.complete(result)
        assert relet.current_run() is None
        return result


@pytest.fixture
def embedded(db, style):
    return Embedded(db, style)


def test_a_block_works_with_steps_and_effects_and_completes(db, embedded):
    task, look, send = db.submit("work"), Calls("found"), Calls("sent")

    async def body(run):
        return [await run.step("look", look), await run.effect("send", 1, send)]

    assert embedded(body) == ["found", "sent"]
    assert (db.result(task.id), len(db.steps(task.id))) == (["found", "sent"], 1)


def test_an_exception_fails_the_attempt_and_the_next_block_goes_on_from_there(db, embedded):
    task, look, crash = db.submit("work"), Calls("found"), Calls(OSError("half-way"), None)

    async def body(run):
        found = await run.step("look", look)
        crash()
        return found

    with pytest.raises(OSError, match="half-way"):
        embedded(body)
    assert (db.task(task.id).state, db.task(task.id).failures) == ("ready", 1)
    db.clock.advance("10m")
    assert (embedded(body), len(look)) == ("found", 1)


def test_a_block_whose_task_was_parked_ends_silently_and_a_later_one_has_the_answer(db, embedded):
    task, runs = db.submit("work"), []

    async def body(run):
        runs.append(run)
        return (await run.approval("publish")).by

    assert embedded(body) is None
    assert runs[0].parked.name == "publish"
    assert db.task(task.id).state == "waiting"
    db.decide(task.id, "publish", "accept", by="ann")
    assert embedded(body) == "ann"
    assert db.task(task.id).attempt == 1


def test_a_block_within_a_task_group_that_is_parked_ends_silently_too(db):
    task = db.submit("work")

    async def main():
        client = AsyncClient(db)
        lease = await client.claim("work")
        async with lease.run() as run, asyncio.TaskGroup() as group:
            group.create_task(run.approval("publish"))
        return run.parked.name

    assert asyncio.run(main()) == "publish"
    assert db.task(task.id).state == "waiting"


def test_an_error_beside_a_wait_in_a_task_group_is_raised_without_the_wait(db):
    task = db.submit("work")

    async def beside():
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("a bug in the cleaning up")

    async def main():
        lease = await AsyncClient(db).claim("work")
        async with lease.run() as run, asyncio.TaskGroup() as group:
            group.create_task(beside())
            group.create_task(run.approval("publish"))

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(main())
    assert [str(one) for one in raised.value.exceptions] == ["a bug in the cleaning up"]
    assert db.task(task.id).state == "waiting"


def test_an_exception_of_its_own_that_follows_on_being_parked_is_not_hidden(db, embedded):
    task = db.submit("work")

    async def body(run):
        try:
            await run.approval("publish")
        finally:
            raise ValueError("a bug in the cleaning up")

    with pytest.raises(ValueError, match="cleaning up"):
        embedded(body)
    assert (db.task(task.id).state, db.task(task.id).failures) == ("waiting", 0)


def test_a_lost_lease_is_raised_at_the_end_of_the_block_by_its_cause(db, embedded):
    task = db.submit("work")

    async def body(run):
        db.clock.advance("61s")
        await run.save("too late")

    with pytest.raises(relet.LeaseLost) as lost:
        embedded(body)
    assert lost.value.reason == "expired"
    assert db.checkpoints(task.id) == []


def test_a_lost_lease_cannot_be_swallowed_by_the_block(db, embedded):
    db.submit("work")

    async def body(run):
        db.clock.advance("61s")
        try:
            await run.save("too late")
        except Exception:
            return "a result"

    with pytest.raises(relet.LeaseLost):
        embedded(body)
    assert db.claim("work").attempt == 2


def test_an_awaiting_block_is_cancelled_at_the_loss(db):
    db.submit("work")

    async def main():
        lease = await AsyncClient(db).claim("work")
        async with lease.run():
            asyncio.get_running_loop().call_soon(db.clock.advance, "61s")
            await asyncio.Event().wait()

    with pytest.raises(relet.LeaseLost):
        asyncio.run(main())


def test_an_order_to_stop_releases_the_lease(db, embedded):
    task = db.submit("work")

    async def body(run):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embedded(body)
    assert (db.task(task.id).state, db.task(task.id).attempt) == ("ready", 1)


def test_a_block_that_is_left_without_an_ending_verb_releases_with_a_warning(db):
    task = db.submit("work")
    with pytest.warns(RuntimeWarning, match="ended without complete"), db.claim("work").run() as run:
        run.step("look", Calls("found"))
    assert (db.task(task.id).state, len(db.steps(task.id))) == ("ready", 1)


def test_a_completion_that_meets_an_unsettled_effect_is_refused_and_names_it(db):
    db.submit("work")
    lease = db.claim("work")
    with lease.run() as run:
        with pytest.raises(OSError, match="reset"):
            run.effect("send", 1, Calls(OSError("reset")), contract=relet.Natural())
        with pytest.raises(relet.Conflict) as unsettled:
            lease.complete("done")
        assert unsettled.value.detail["effects"] == [db.effects()[0].id]
        assert run.effect("send", 1, Calls("sent"), contract=relet.Natural()) == "sent"
        lease.complete("done")
    assert db.result(lease.task_id) == "done"


def test_blocks_within_blocks_have_their_own_current_runs(db):
    db.submit_many("work", [1, 2])
    with db.claim("work").run() as outer:
        with db.claim("work").run() as inner:
            assert relet.current_run() is inner
            inner.lease.complete()
        assert relet.current_run() is outer
        outer.lease.complete()
    assert relet.current_run() is None
