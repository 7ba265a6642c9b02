"""A fork while heartbeats run: the parent's go on, the child starts its own, and holds nothing of the parent's."""

import asyncio
import threading

import pytest

from relet.client.awaiting import AsyncClient
from tests.store.forking import Child, forked, held_elsewhere
from tests.waiting import eventually

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture
def lease(db):
    db.submit("q", 1, id="parent", ttl=60)
    lease = db.claim("q", holder="parent")
    db.submit("q", 2, id="child", ttl=60)
    return lease


def kept_by(db):
    return [belief.grant.handle.task_id for belief in db.keeper._kept]


def test_the_keeper_of_the_parent_goes_on_and_the_child_has_one_of_its_own(db, lease):
    def child(talk):
        own = db.claim("q", holder="child")
        with own:
            talk.say([kept_by(db), db.keeper._thread.is_alive()])
            db.clock.advance(20)
            eventually(lambda: own.expires_in == 60)
            own.complete("by the child")
        return kept_by(db)

    with lease:
        with Child(child) as talk:
            assert talk.hear() == [["child"], True], "and nothing that the parent holds"
            assert talk.hear() == []
        assert kept_by(db) == ["parent"]
        db.clock.advance(20)
        eventually(lambda: lease.expires_in == 60)
        assert db.task("parent").live
        lease.complete(1)
    assert db.result("child") == "by the child"


def test_a_child_that_looks_at_the_lease_of_its_parent_does_not_renew_it(db, lease):
    def child():
        db.clock.advance(20)
        lease.check()
        return [lease.status, lease.expires_in, kept_by(db) if db.keeper._thread is None else "parent's"]

    with lease:
        assert forked(child) == ["held", 40, "parent's"]
        lease.complete(1)


def test_a_child_may_steer_the_clock_and_close_the_client(db, lease):
    def child():
        db.clock.advance(1)
        db.close()
        return "closed"

    with lease.keep():
        with held_elsewhere(db.keeper._condition):
            assert forked(child) == "closed"
        db.clock.advance(20)
        eventually(lambda: lease.expires_in == 60)


def test_an_awaiting_client_works_in_a_child_although_its_threads_do_not_survive(db, lease):
    adb = AsyncClient(db)

    async def finish():
        own = await adb.claim("q", holder="child")
        async with own:
            await own.complete("by the child")
        return (await adb.task("child")).state

    assert asyncio.run(adb.task("parent")).live, "its threads are running"
    assert threading.active_count() > 1
    assert forked(lambda: asyncio.run(finish())) == "done"
    assert asyncio.run(adb.task("child")).result == "by the child"
