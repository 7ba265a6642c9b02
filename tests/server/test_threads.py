"""Which threads of the service do what: a crowd in front of a lock is in nobody's way but its own."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from relet.core.errors import Unavailable
from relet.core.model import Handle
from relet.core.rules.inspect import FindTask
from relet.core.rules.keys import FindKeys
from relet.core.rules.renew import Renew, Renewed
from relet.core.rules.sweep import Sweep
from relet.server import service
from relet.server.service import QUICK_S, Service
from tests.waiting import PATIENCE_S, eventually

ASK = FindKeys(ids=["k"])


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


def in_threads(store, monkeypatch):
    """Those in which it is asked."""
    threads = []
    monkeypatch.setattr(store, "operate", lambda _ask: threads.append(threading.current_thread()) or "found")
    return threads


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
        assert await served.operate(ASK) == "found"
        beat = Renew(handles=[Handle(task_id="t", token=1, secret="s")])
        assert await served.ask("t", beat) == [Renewed(left_ms=1)]
        assert not any(writer.done() for writer in writers)
        store.lock.set()
        assert await asyncio.gather(*writers) == ["answered"] * 5
        served.close()

    run(play)


@pytest.mark.parametrize("at_once", [None, [None], "seen"])
def test_a_look_is_taken_in_the_loop_where_it_can_be_and_in_a_thread_where_not(store, monkeypatch, at_once):
    threads = in_threads(store, monkeypatch)
    monkeypatch.setattr(store, "at_once", at_once)

    async def play():
        served = Service(store, None)
        assert await served.look(ASK) == "found", "nobody knows yet how long it takes"
        del threads[:]
        assert await served.look(ASK) == ("found" if at_once is None else at_once)
        assert [thread.name[:17] for thread in threads] == (["relet-serve-quick"] if at_once is None else [])
        served.close()

    run(play)


def test_while_looks_take_long_the_loop_leaves_them_to_threads(store, monkeypatch):
    """As while a process that was stopped has the locks of readers: SQLite sleeps then, whatever it is told."""
    now, takes_s = 100.0, 0.0
    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=lambda: now))
    threads = in_threads(store, monkeypatch)

    def slowly(answer):
        nonlocal now
        now += takes_s
        return answer

    monkeypatch.setattr(store, "operate_at_once", lambda _ask: slowly("seen"))
    operate = store.operate
    monkeypatch.setattr(store, "operate", lambda ask: slowly(operate(ask)))

    async def play():
        nonlocal takes_s
        served = Service(store, None)
        took = []
        for takes_s in (0, 0, 2 * QUICK_S, 2 * QUICK_S, QUICK_S / 2, QUICK_S / 2):  # noqa: B007 - `slowly` reads it
            took.append((await served.look(ASK), len(threads)))
            del threads[:]
        assert took == [("found", 1), ("seen", 0), ("seen", 0), ("found", 1), ("found", 1), ("seen", 0)]
        served.close()

    run(play)


def test_a_look_that_failed_for_long_was_not_quick(store, monkeypatch):
    now = 100.0
    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=lambda: now))

    def away(_ask):
        nonlocal now
        now += 10
        raise Unavailable("locked")

    monkeypatch.setattr(store, "operate_at_once", away)

    async def play():
        served = Service(store, None)
        await served.look(ASK)
        with pytest.raises(Unavailable):
            await served.look(ASK)
        assert await served.look(ASK) == "found"
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
