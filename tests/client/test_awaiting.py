"""The awaiting client: blocks that are cancelled on a loss, cancels of somebody else, and a loop that is blocked."""

import asyncio
import contextlib
import time

import pytest

import relet
from relet.client.awaiting import AsyncClient
from relet.core.errors import LeaseLost, Permanent, Unavailable
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from tests.client.line import Line
from tests.waiting import Gate, eventually

WITHIN_S = 15


@pytest.fixture
def adb(db):
    db.submit("q", 1, id="t", ttl=60)
    return AsyncClient(db)


def run(work):
    return asyncio.run(asyncio.wait_for(work, WITHIN_S))


async def came_true(condition):
    await asyncio.to_thread(eventually, condition)


async def claimed(adb):
    lease = await adb.claim("q", holder="A")
    assert lease is not None
    return lease


async def lose(adb):
    """The store takes the lease away, and the keeper hears of it while the block waits."""
    await adb.cancel("t", "no need")
    adb.blocking.clock.advance(20)
    await asyncio.sleep(WITHIN_S)
    raise AssertionError("nobody cancelled the block")


def test_every_verb_is_awaited(adb):
    async def work():
        lease = await claimed(adb)
        assert await lease.renew() == 60
        assert await lease.save({"page": 1}) == 1
        assert await lease.load() == {"page": 1}
        await lease.check(need=50)
        await adb.submit("q", 2, id="next")
        following = await lease.complete("done", claim_next=True)
        assert (following.task_id, await adb.result("t")) == ("next", "done")
        assert (await adb.lease(following.handle)).token == following.token
        await following.fail("no", retry=False)
        assert (await adb.task("next")).state == "failed"
        await adb.requeue("next")
        (again,) = await adb.claim_many("q", 5)
        assert await adb.renew_many([again]) == [60]
        await again.release()
        assert [task.id for task in await adb.tasks(queue="q")] == ["t", "next"]
        await adb.close()

    run(work())


def test_a_block_renews_its_lease_and_ends_as_the_blocking_one(adb, db):
    async def work():
        lease = await claimed(adb)
        async with lease as same:
            assert same is lease
            db.clock.advance(20)
            await came_true(lambda: lease.expires_in == 60)
            await lease.complete("done")

    run(work())
    assert db.result("t") == "done"


@pytest.mark.parametrize(
    ("raised", "state"), [(ValueError("no"), "ready"), (Permanent("never"), "failed")], ids=["retry", "permanent"]
)
def test_an_exception_fails_the_attempt(adb, db, raised, state):
    async def work():
        async with await claimed(adb):
            raise raised

    with pytest.raises(type(raised)):
        run(work())
    assert (db.task("t").state, db.task("t").failures) == (state, 1)


def test_a_block_that_ends_nothing_releases_with_a_warning(adb, db):
    async def work():
        async with await claimed(adb):
            pass

    with pytest.warns(RuntimeWarning, match="the block of task t ended without"):
        run(work())
    assert db.task("t").state == "ready"


@pytest.mark.parametrize("how", ["block", "keep"])
def test_a_block_is_cancelled_on_a_loss_and_raises_it_at_its_end(adb, how):
    seen = []

    async def work():
        lease = await claimed(adb)
        try:
            async with lease if how == "block" else lease.keep():
                try:
                    await lose(adb)
                except asyncio.CancelledError:
                    seen.append("cancelled")
                    raise
        except LeaseLost as lost:
            seen.append(lost.reason)
        assert asyncio.current_task().cancelling() == 0, "the cancel is taken back"
        await asyncio.sleep(0)
        return "and goes on"

    assert run(work()) == "and goes on"
    assert seen == ["cancelled", "cancelled"]


def test_a_loss_is_raised_even_where_the_block_swallowed_the_cancel(adb):
    async def work():
        async with await claimed(adb):
            with contextlib.suppress(asyncio.CancelledError):
                await lose(adb)

    with pytest.raises(LeaseLost) as lost:
        run(work())
    assert lost.value.reason == "cancelled"


def test_a_loss_within_a_group_of_tasks_ends_all_of_them(adb):
    async def work():
        async with await claimed(adb), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(WITHIN_S))
            await lose(adb)

    with pytest.raises(LeaseLost):
        run(work())


@pytest.mark.parametrize("how", ["block", "keep"])
def test_a_cancel_from_outside_goes_through_and_gives_the_task_back(adb, db, how):
    async def work():
        lease = await claimed(adb)
        inside = asyncio.Event()

        async def block():
            async with lease if how == "block" else lease.keep():
                inside.set()
                await asyncio.sleep(WITHIN_S)

        task = asyncio.create_task(block())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    run(work())
    assert db.task("t").state == ("ready" if how == "block" else "leased")
    assert db.task("t").attempt == 1


@pytest.mark.parametrize("how", ["block", "keep"])
@pytest.mark.parametrize("noticed", [True, False], ids=["loss-noticed", "loss-unseen"])
def test_a_cancel_from_outside_goes_through_a_loss_too(adb, db, how, noticed):
    async def work():
        lease = await claimed(adb)
        inside = asyncio.Event()

        async def block():
            async with lease if how == "block" else lease.keep():
                inside.set()
                await asyncio.sleep(WITHIN_S)

        task = asyncio.create_task(block())
        await inside.wait()
        task.cancel()
        if noticed:
            lease.belief.lose(lease.belief.lost_error("superseded"))
        else:
            db.keeper.close()
            db.clock.advance(57)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    run(work())


def test_a_timeout_around_the_block_is_a_timeout(adb, db):
    async def work():
        lease = await claimed(adb)
        async with asyncio.timeout(0.02), lease:
            await asyncio.sleep(WITHIN_S)

    with pytest.raises(TimeoutError):
        run(work())
    assert db.task("t").state == "ready"


def test_a_lease_that_another_process_ended_ends_its_block_silently(adb, db):
    async def work():
        lease = await claimed(adb)
        async with lease:
            db.lease(lease.handle).complete("elsewhere")
            db.clock.advance(20)
            await asyncio.sleep(WITHIN_S)
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(0)
        return "and goes on"

    assert run(work()) == "and goes on"
    assert db.result("t") == "elsewhere"


def test_a_block_over_a_lease_that_is_lost_already_is_cancelled_at_its_first_wait(adb, db):
    steps = []

    async def work():
        lease = await claimed(adb)
        db.cancel("t")
        with pytest.raises(LeaseLost):
            await lease.renew()
        async with lease:
            steps.append("entered")
            await asyncio.sleep(WITHIN_S)
            steps.append("went on")

    with pytest.raises(LeaseLost):
        run(work())
    assert steps == ["entered"]


@pytest.fixture
def cancelled(db, monkeypatch):
    """Cancels an awaited verb once the store has answered it, and before anybody was told."""
    granted, answered = Gate(), Gate()
    real = db.backend.call

    def slow(ask, **patience):
        answer = real(ask, **patience)
        if isinstance(ask, (Claim, Complete)):
            granted.set()
            answered.pass_through()
        return answer

    async def cancelled(verb):
        with monkeypatch.context() as slowed:
            slowed.setattr(db.backend, "call", slow)
            asking = asyncio.create_task(verb)
            await asyncio.to_thread(granted.pass_through)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        answered.set()

    return cancelled


def test_a_claim_that_is_cancelled_on_its_way_gives_back_what_it_was_granted(adb, db, cancelled):
    async def work():
        await cancelled(adb.claim("q"))
        await came_true(lambda: db.task("t").state == "ready")

    run(work())
    assert db.task("t").attempt == 1


def test_a_claim_under_a_request_id_of_the_callers_is_kept_for_whoever_repeats_it(adb, db, cancelled):
    async def work():
        await cancelled(adb.claim("q", request_id="r"))
        await adb.hop(lambda: None)
        assert db.task("t").state == "leased"
        return await adb.claim("q", request_id="r")

    assert run(work()).token == db.task("t").token
    assert [event.kind for event in db.history("t")] == ["submitted", "claimed"]


@pytest.mark.parametrize("request_id", ["r", None])
def test_a_cancelled_completion_gives_back_what_it_claimed_unless_it_can_be_repeated(adb, db, cancelled, request_id):
    db.submit("q", 2, id="next")

    async def work():
        lease = await claimed(adb)
        await cancelled(lease.complete("done", claim_next=True, request_id=request_id))
        if request_id is None:
            await came_true(lambda: db.task("next").state == "ready")
            return
        following = await lease.complete("done", claim_next=True, request_id=request_id)
        assert following.token == db.task("next").token

    run(work())
    assert db.result("t") == "done"
    assert db.task("next").state == ("ready" if request_id is None else "leased")


def test_in_doubt_a_check_renews_first(adb, db):
    async def work():
        lease = await claimed(adb)
        db.clock.advance(10)
        db.clock.step(3_600)
        await lease.check()
        return lease.expires_in

    assert run(work()) == 60


def test_waiting_for_a_task_takes_no_thread_and_ends_with_it(adb, db):
    async def work():
        waiting = asyncio.create_task(adb.claim("later", wait=WITHIN_S))
        await asyncio.sleep(0)
        await adb.submit("later", 1, id="came")
        return (await waiting).task_id

    assert run(work()) == "came"


def test_a_result_that_does_not_come_in_time_is_a_timeout(adb):
    with pytest.raises(TimeoutError, match="task t is not finished"):
        run(adb.result("t", wait=0.01))


def test_a_store_that_is_silent_makes_the_lease_doubtful_and_not_lost(adb, db):
    line = db.backend = Line(db.backend)
    db.keeper._backend = line

    async def work():
        lease = await claimed(adb)
        async with lease:
            with line.cut():
                db.clock.advance(20)
                await came_true(lambda: lease.status == "doubtful")
            db.clock.advance(5)
            await came_true(lambda: lease.status == "held")
            await lease.complete(1)

    run(work())


def test_a_connection_may_be_awaited_or_used_as_a_block(tmp_path):
    url = f"sqlite:///{tmp_path / 'relet.db'}"

    async def work():
        adb = await relet.connect_async(url)
        await adb.submit("q", 1, id="t")
        await adb.close()
        with pytest.raises(Unavailable, match="this client is closed"):
            await adb.task("t")
        async with relet.connect_async(url, holder="B") as again:
            return (await again.claim("q")).holder

    assert run(work()) == "B"


@pytest.mark.slow
def test_an_event_loop_that_is_blocked_for_three_ttls_keeps_its_lease(tmp_path):
    async def work():
        async with relet.connect_async(f"sqlite:///{tmp_path / 'relet.db'}") as adb:
            await adb.submit("q", 1, id="t", ttl=0.5)
            lease = await claimed(adb)
            async with lease:
                time.sleep(1.5)  # noqa: ASYNC251 - a mistake of the user's, which must not cost the lease
                await lease.check()
                assert lease.status == "held"
                await lease.complete("kept")
            return await adb.result("t")

    assert run(work()) == "kept"
