"""How a service stands is what its store answered, and nothing else: not that it runs, nor that it tries."""

import asyncio
import threading
import time
from contextlib import contextmanager

import msgspec
import pytest

from relet.core.errors import Unavailable
from relet.core.rules.inspect import Changes
from relet.server import health, news, service, upkeep
from relet.server.health import ANSWER_LATE_S, LOOK_EVERY_S, NEWS_LATE_S, WRITE_LATE_S, Health
from relet.server.news import News
from relet.server.upkeep import Upkeep
from tests.ticking import Ticking
from tests.waiting import PATIENCE_S, eventually
from tests.write_lock import write_lock_held

AGES = {"answered_ms_ago", "wrote_ms_ago", "looked_ms_ago", "silent_ms"}
NOW_MS = 1
"""The age of what is of this instant: none is told as less than it is."""


@pytest.fixture
def calls(served, monkeypatch):
    """What is asked of the store; an answer waits until `open`, and is an error where `wrong` is one."""

    class Calls:
        asked, answered, open, wrong = [], [], threading.Event(), None

    real, calls = served.backend.call, Calls()
    calls.open.set()

    def call(ask, **options):
        calls.asked.append(ask)
        assert calls.open.wait(PATIENCE_S)
        calls.answered.append(ask)
        if calls.wrong is not None:
            raise calls.wrong
        return real(ask, **options)

    monkeypatch.setattr(served.backend, "call", call)
    yield calls
    calls.open.set()


class Looking:
    """A way to see how a service stands, by a clock of its own; nothing watches its store, or looks after it, yet."""

    def __init__(self, served):
        self.served, self.clock = served, Ticking()
        served.service.news = News(served.backend, self.clock)
        self.tending = Upkeep(served.service, self.clock)
        self.health = Health(served.service, self.tending, self.clock)

    def told(self, path="readyz"):
        reply = self.served.loop.run_until_complete(getattr(self.health, path)(None))
        found = msgspec.json.decode(reply.body)
        assert reply.status_code == (503 if found["wrong"] else 200)
        return found

    def until(self, wanted):
        """How it stands once it is as wanted; the clock stands still meanwhile."""

        async def look():
            deadline = time.monotonic() + PATIENCE_S
            while not wanted(found := await self.health._looked()):
                assert time.monotonic() < deadline, found
                await asyncio.sleep(0.01)
            return found

        return self.served.loop.run_until_complete(look())


@pytest.fixture
def looking(served):
    return Looking(served)


def test_it_tells_ages_to_everybody_and_nothing_more(served):
    for path in ("/healthz", "/readyz"):
        reply = served.ask("GET", path)
        assert (reply.status, reply.json.keys()) == (200, AGES | {"ready", "wrong"})
        assert (reply.headers["content-type"], reply.headers["cache-control"]) == ("application/json", "no-store")
        assert all(reply.json[name] is None or isinstance(reply.json[name], int) for name in AGES)


def test_a_store_that_does_not_answer_is_told_in_time_and_it_recovers_by_itself(looking, calls, monkeypatch):
    assert looking.told()["ready"]
    monkeypatch.setattr(health, "LOOK_S", 0.01)  # of the loop's own clock: how long anybody who asks waits
    calls.open.clear()
    looking.clock.now = ANSWER_LATE_S
    assert looking.told()["ready"], "that old an answer may be"
    looking.clock.now += 0.5
    for path in ("healthz", "readyz"):
        found = looking.told(path)
        assert (found["wrong"], found["answered_ms_ago"]) == (["answered"], (ANSWER_LATE_S + 0.5) * 1_000 + NOW_MS)
    assert len(calls.answered) == 1, "no answer has waited for the store itself"
    calls.open.set()
    assert looking.until(lambda found: found.ready).answered_ms_ago <= 500 + NOW_MS


def test_an_answer_is_as_old_as_its_question(looking, calls):
    """One that was long under way says how it was then."""

    async def late():
        calls.open.clear()
        look = asyncio.create_task(looking.health._look_at_store())
        await asyncio.to_thread(eventually, lambda: calls.asked)
        assert looking.health.standing().answered_ms_ago is None
        looking.clock.now += 2
        calls.open.set()
        await look
        return looking.health.standing().answered_ms_ago

    assert looking.served.loop.run_until_complete(late()) == 2_000 + NOW_MS


def test_a_write_is_as_old_as_its_beginning(looking, monkeypatch):
    real = looking.served.backend.operate

    def operate(ask):
        looking.clock.now += 2
        return real(ask)

    monkeypatch.setattr(looking.served.backend, "operate", operate)
    looking.served.loop.run_until_complete(looking.tending._prove())
    assert looking.health.unwritten_ms() == looking.told()["wrote_ms_ago"] == 2_000 + NOW_MS


def test_ob_02_errors_do_not_make_it_look_alive(looking, calls):
    calls.wrong = Unavailable("the disk is gone")
    for _ in range(5):
        assert looking.told() == {"ready": False, "wrong": ["answered"], **dict.fromkeys(AGES)}
        looking.clock.now += LOOK_EVERY_S
    assert len(calls.asked) == 5, "it was asked each time"
    calls.wrong = None
    assert looking.told()["ready"]


def test_many_who_want_to_know_share_one_look(looking, calls):
    async def crowd():
        return await asyncio.gather(*(looking.health._looked() for _ in range(200)))

    assert all(one.ready for one in looking.served.loop.run_until_complete(crowd()))
    assert calls.asked == [Changes()]
    looking.clock.now = LOOK_EVERY_S / 2
    assert looking.told()["answered_ms_ago"] == LOOK_EVERY_S * 500 + NOW_MS
    assert calls.asked == [Changes()], "an answer that young is not asked for again"


def test_what_has_never_gone_well_is_as_late_as_what_went_well_at_the_beginning(looking):
    looking.tending.begun_at = looking.served.service.news.begun_at = 0.0
    looking.clock.now = NEWS_LATE_S + 0.5
    assert looking.told()["wrong"] == ["looked"]
    looking.clock.now = WRITE_LATE_S + 0.5
    found = looking.told()
    assert (found["wrong"], found["wrote_ms_ago"], found["looked_ms_ago"]) == (["wrote", "looked"], None, None)
    assert looking.health.unwritten_ms() == looking.health.unlooked_ms() == (WRITE_LATE_S + 0.5) * 1_000 + NOW_MS


@contextmanager
def begun(looking, monkeypatch):
    """The store is watched, and looked after; both are quick to try again."""
    monkeypatch.setattr(news, "LOOK_ANYWAY_S", 0.02)
    monkeypatch.setattr(news, "AWAY_S", 0.02)
    monkeypatch.setattr(upkeep, "SWEEP_EVERY_S", 0.02)
    monkeypatch.setattr(upkeep, "PROVE_EVERY_S", 0.0)
    monkeypatch.setattr(service, "PATIENCE_MS_MAX", 50)
    watched, loop = looking.served.service.news, looking.served.loop

    async def begin():
        watched.begin()
        looking.tending.begin()

    async def end():
        watched.stop()
        ending = looking.health.standing()
        await looking.tending.end()
        return ending

    loop.run_until_complete(begin())
    yield
    assert "stopping" in loop.run_until_complete(end()).wrong


def test_a_store_that_takes_no_writes_is_told_of_though_it_answers(looking, monkeypatch):
    with begun(looking, monkeypatch):
        looking.until(lambda found: found.ready and found.wrote_ms_ago == found.looked_ms_ago == NOW_MS)
        with write_lock_held(looking.served.db):
            looking.clock.now += WRITE_LATE_S + 1
            found = looking.until(lambda found: found.wrong == ["wrote"])
            assert (found.wrote_ms_ago, found.answered_ms_ago) == ((WRITE_LATE_S + 1) * 1_000 + NOW_MS, NOW_MS)
        assert looking.until(lambda found: found.ready).wrote_ms_ago == NOW_MS


@pytest.mark.case("PG-03")
def test_a_watch_that_looks_no_more_is_told_of_though_the_store_answers(looking, monkeypatch):
    watch = looking.served.backend.watch()
    real, wrong, refused = type(watch).wait, [], []
    watch.close()

    def wait(self, seconds):
        if wrong:
            refused.append(self)
            raise wrong[0]
        return real(self, seconds)

    monkeypatch.setattr(type(watch), "wait", wait)
    with begun(looking, monkeypatch):
        looking.until(lambda found: found.ready and found.looked_ms_ago == found.wrote_ms_ago == NOW_MS)
        wrong.append(Unavailable("away"))
        eventually(lambda: refused)
        looking.clock.now += NEWS_LATE_S + 1
        found = looking.until(lambda found: found.wrong == ["looked"])
        assert (found.looked_ms_ago, found.answered_ms_ago) == ((NEWS_LATE_S + 1) * 1_000 + NOW_MS, NOW_MS)
        wrong.clear()
        assert looking.until(lambda found: found.ready).looked_ms_ago == NOW_MS
        assert found.silent_ms is None, "of a file there is no line that could fall silent"
