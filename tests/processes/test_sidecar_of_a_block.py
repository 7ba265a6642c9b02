"""`lease.keep(heartbeat="process")`: the block of any program is kept as a worker's handler is, and no longer."""

import asyncio
from pathlib import Path

import pytest

import relet
from relet.client.awaiting import AsyncClient
from relet.client.awaiting_lease import AsyncLease
from relet.client.beside.board import ENTRIES
from relet.testing.clock import Clock
from relet.testing.stores import open_store
from tests.alive import is_gone
from tests.processes.freezing import freeze, thaw
from tests.processes.recording import gaps_s, record_beats
from tests.processes.test_sidecar import outlives_its_sidecar
from tests.store.forking import Child
from tests.waiting import Gate, eventually

PROGRAM = Path(__file__).parent / "programs" / "held_gil_in_block.py"
STYLES = ["blocking", "awaiting"]


def kinds_of(db, task):
    return [event.kind for event in db.history(task.id)]


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_hb_01_a_block_that_holds_the_gil_for_three_ttls_keeps_its_lease(db, start, url, style):
    record_beats(db)
    task = db.submit("work", ttl="1s")
    start(PROGRAM, url, style, "process", "holds")
    assert db.result(task.id, wait=20) == "done"
    assert kinds_of(db, task) == ["submitted", "claimed", "completed"]
    assert len(gaps_s(db, db.task(task.id).token)) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_hb_01_with_the_thread_alone_such_a_block_loses_its_lease_and_hears_of_it(db, start, url, style):
    task = db.submit("work", ttl="1s")
    program = start(PROGRAM, url, style, "thread", "holds")
    assert [program.line(), program.line()] == ["-", "begins"]
    lease = db.claim("work", wait=10, ttl="60s")
    assert (lease.task_id, lease.attempt, lease.took_over.reason) == (task.id, 2, "expired")
    assert program.line().startswith("lost ")


def waiting(db, start, url):
    """A task whose program waits within its block, that program, and its sidecar."""
    task = db.submit("work", ttl="1s")
    program = start(PROGRAM, url, "blocking", "process", "waits")
    sidecar = int(program.line())
    assert program.line() == "begins"
    return task, program, sidecar


@pytest.mark.slow
def test_the_sidecar_of_a_stopped_program_is_silent_and_its_late_write_is_refused(db, start, url):
    task, program, sidecar = waiting(db, start, url)
    freeze(program, db)
    lease = db.claim("work", wait=5, ttl="60s")
    assert (lease.task_id, lease.attempt, is_gone(sidecar)) == (task.id, 2, False)
    program.tell("go on")
    thaw(program)
    assert program.line().startswith("lost ")
    lease.complete("by the next one")
    assert db.result(task.id) == "by the next one"


@pytest.mark.slow
def test_hb_09_the_sidecar_of_a_killed_program_ends_and_the_lease_lapses(db, start, url):
    task, program, sidecar = waiting(db, start, url)
    program.process.kill()
    program.wait()
    eventually(lambda: is_gone(sidecar), within=1 / 3)
    assert db.claim("work", wait=5, ttl="60s").task_id == task.id


@pytest.mark.slow
def test_a_killed_sidecar_of_a_client_is_replaced_and_the_block_goes_on(db, start, url):
    record_beats(db)
    task = db.submit("work", ttl="1s")
    outlives_its_sidecar(db, start(PROGRAM, url, "awaiting", "process", "waits"), task)


def test_hb_09_a_client_that_is_closed_ends_its_sidecar_while_the_program_goes_on(db, start, url):
    db.submit("work", ttl="60s")
    program = start(PROGRAM, url, "blocking", "process", "waits")
    sidecar = int(program.line())
    program.tell("go on")
    assert [program.line(), program.line()] == ["begins", "left"]
    assert not is_gone(sidecar), "the next block of the client has it again"
    program.tell("close")
    assert program.line() == "closed"
    eventually(lambda: is_gone(sidecar))
    assert program.process.poll() is None


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_neither_ends_the_sidecar_of_its_parent_nor_keeps_it_from_ending(url):
    with relet.connect(url, holder="parent") as db:
        db.submit_many("work", [1, 2], ttl="60s")
        lease, other = db.claim_many("work", 2)

        def child(talk):
            db.keeper.remove(lease.belief)
            with db.lease(other.handle).keep(heartbeat="process"):
                talk.say(db.keeper._beside.process.pid)
            db.close()
            talk.wait()

        with lease.keep(heartbeat="process"):
            sidecar = db.keeper._beside
            with Child(child) as talk:
                pid = talk.hear()
                assert pid != sidecar.process.pid
                eventually(lambda: is_gone(pid))
                assert lease.belief.news is not None
                assert sidecar.process.poll() is None
                db.keeper.close()
                eventually(lambda: sidecar.process.poll() is not None)
                talk.go_on()
            lease.complete()


def test_blocks_within_one_another_are_kept_until_the_outer_one_ends(url):
    with relet.connect(url) as db:
        db.submit("work", ttl="60s")
        lease = db.claim("work")
        with lease.keep(heartbeat="process"):
            news = lease.belief.news
            with lease.keep(heartbeat="process"):
                assert lease.belief.news is news
            assert lease.belief.news is news
        assert lease.belief.news is None
        with lease.keep(heartbeat="process"):
            lease.complete()
            assert lease.belief.news is None, "it is let go of as the lease ends"


def test_more_leases_than_the_board_has_room_for_are_refused_and_not_kept(url):
    with relet.connect(url) as db:
        db.submit("work", ttl="60s")
        lease = db.claim("work")
        sidecar = db.keeper.beside()
        assert len(sidecar._free) == ENTRIES
        sidecar._free.clear()
        with pytest.raises(relet.Invalid, match="serves 4096 leases"), lease.keep(heartbeat="process"):
            raise AssertionError("it begins")
        assert db.keeper._kept == {}
        lease.complete()


@pytest.mark.parametrize("heartbeat", ["sidecar", None, True])
def test_a_heartbeat_that_means_nothing_is_refused(url, heartbeat):
    with relet.connect(url) as db:
        db.submit("work")
        lease = db.claim("work")
        with pytest.raises(relet.Invalid, match='give "thread", or "process"'), lease.keep(heartbeat=heartbeat):
            raise AssertionError("it begins")
        lease.complete()


def test_a_block_on_a_store_in_memory_has_no_heartbeat_beside():
    with relet.connect("sqlite://") as db:
        db.submit("work")
        lease = db.claim("work")
        with pytest.raises(relet.Invalid, match="another process can open"), lease.keep(heartbeat="process"):
            raise AssertionError("it begins")
        lease.complete()


def test_a_beat_that_is_due_is_sent_before_the_work_begins(tmp_path):
    """By the keeper's thread it would be under way when the work stops all threads."""
    with open_store(tmp_path, Clock()) as db:
        db.submit("work", ttl=60)
        lease = db.claim("work")
        for passed, left in ((10, 50), (10, 60)):
            db.clock.advance(passed)
            db.keeper.keep_beside(lease.belief)
            assert lease.expires_in == left
        lease.complete()


@pytest.mark.parametrize("style", STYLES)
def test_a_lease_is_kept_by_the_thread_while_the_process_begins(tmp_path, monkeypatch, style):
    with open_store(tmp_path, Clock()) as db:
        db.submit("work", ttl=60)
        lease = db.claim("work")
        begin = db.keeper.beside

        def slowly():
            db.clock.advance(40)
            eventually(lambda: lease.expires_in == 60)
            return begin()

        monkeypatch.setattr(db.keeper, "beside", slowly)
        if style == "blocking":
            with lease.keep(heartbeat="process"):
                lease.complete()
        else:
            asyncio.run(completed_in_a_block(AsyncLease(AsyncClient(db), lease)))
        assert db.task(lease.task_id).state == "done"


async def completed_in_a_block(lease):
    async with lease.keep(heartbeat="process"):
        await lease.complete()


def test_a_block_that_is_cancelled_while_the_process_begins_keeps_nothing(url, monkeypatch):
    begins, goes_on, ended = Gate(), Gate(), Gate()

    async def run():
        async with relet.connect_async(url) as db:
            await db.submit("work", ttl="60s")
            lease = await db.claim("work")
            keeper = db.blocking.keeper
            begin, keep_beside = keeper.beside, keeper.keep_beside

            def slowly():
                begins.set()
                goes_on.pass_through()
                return begin()

            def told(belief):
                keep_beside(belief)
                ended.set()

            monkeypatch.setattr(keeper, "beside", slowly)
            monkeypatch.setattr(keeper, "keep_beside", told)
            block = asyncio.create_task(completed_in_a_block(lease))
            await asyncio.to_thread(begins.pass_through)
            block.cancel()
            with pytest.raises(asyncio.CancelledError):
                await block
            goes_on.set()
            await asyncio.to_thread(ended.pass_through)
            assert (keeper._kept, lease.belief.news) == ({}, None)
            assert keeper._beside._kept == {}

    asyncio.run(run())
