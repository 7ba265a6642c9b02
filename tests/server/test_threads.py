"""Which threads of the service do what: a crowd in front of a lock is in nobody's way but its own."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from relet.core.model import Handle
from relet.core.rules.inspect import FindTask
from relet.core.rules.keys import FindKeys
from relet.core.rules.renew import Renew, Renewed
from relet.core.rules.sweep import Sweep
from relet.server import service
from relet.server.service import Service
from tests.waiting import PATIENCE_S, eventually


class Store:
    """Whose lock somebody else has: what writes for good waits for it."""

    answers_side_by_side = False
    tenant = "t"

    def __init__(self):
        self.lock, self.waiting, self.patience = threading.Event(), [], []
        self.at_once = None

    def call(self, ask, *, patience_ms):
        self.patience.append(patience_ms)
        if isinstance(ask, Sweep):
            self.waiting.append(ask)
            self.lock.wait(PATIENCE_S)
        return [Renewed(left_ms=1)] if isinstance(ask, Renew) else "answered"

    def operate(self, _ask):
        return "found"

    def operate_at_once(self, _ask):
        return self.at_once


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(service, "THREADS", 1)
    store = Store()
    yield store
    store.lock.set()


def run(play):
    async def within():
        async with asyncio.timeout(PATIENCE_S):
            await play()

    asyncio.run(within())


def test_behind_a_lock_reads_heartbeats_and_keys_are_answered(store):
    async def play():
        served = Service(store, None)
        writers = [asyncio.ensure_future(served.ask("t", Sweep())) for _ in range(5)]
        await asyncio.to_thread(eventually, lambda: store.waiting)
        assert await served.ask("t", FindTask(task_id="t")) == "answered"
        assert await served.operate(FindKeys(ids=["k"])) == "found"
        beat = Renew(handles=[Handle(task_id="t", token=1, secret="s")])
        assert await served.ask("t", beat) == [Renewed(left_ms=1)]
        assert not any(writer.done() for writer in writers)
        store.lock.set()
        assert await asyncio.gather(*writers) == ["answered"] * 5
        served.close()

    run(play)


@pytest.mark.parametrize("at_once", [None, [None], "seen"])
def test_a_look_is_taken_in_the_loop_where_it_can_be_and_in_a_thread_where_not(store, monkeypatch, at_once):
    threads = []
    monkeypatch.setattr(store, "at_once", at_once)
    monkeypatch.setattr(store, "operate", lambda _ask: threads.append(threading.current_thread()) or "found")

    async def play():
        served = Service(store, None)
        assert await served.look(FindKeys(ids=["k"])) == ("found" if at_once is None else at_once)
        assert [thread.name[:17] for thread in threads] == (["relet-serve-quick"] if at_once is None else [])
        served.close()

    run(play)


def test_the_time_for_which_a_thread_was_waited_for_is_part_of_the_patience(store, monkeypatch):
    now = 100.0
    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=lambda: now))

    async def play():
        nonlocal now
        served = Service(store, None)
        first = asyncio.ensure_future(served.ask("t", Sweep(), 3_000))
        second, third = (asyncio.ensure_future(served.ask("t", Sweep(), ms)) for ms in (3_000, 1_000))
        await asyncio.to_thread(eventually, lambda: store.waiting)
        now += 2
        store.lock.set()
        await asyncio.gather(first, second, third)
        assert store.patience == [3_000, 1_000, 1]
        served.close()

    run(play)
