"""How a service stands is what its store answered, and nothing else: not that it runs, nor that it tries."""

import asyncio
import threading
import time
from contextlib import contextmanager

import pytest

from relet.core.errors import Unavailable
from relet.core.rules.inspect import Changes
from relet.server import health, news, service, upkeep
from relet.server.health import Health
from relet.server.upkeep import Upkeep
from tests.waiting import PATIENCE_S, eventually
from tests.write_lock import write_lock_held

AGES = {"answered_ms_ago", "wrote_ms_ago", "looked_ms_ago", "silent_ms"}


@pytest.fixture
def quick(monkeypatch):
    """A service that expects its store to be as quick as one that nobody else uses."""
    monkeypatch.setattr(health, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(health, "LOOK_S", 0.2)
    monkeypatch.setattr(health, "ANSWER_LATE_S", 0.25)
    monkeypatch.setattr(health, "WRITE_LATE_S", 0.6)
    monkeypatch.setattr(health, "NEWS_LATE_S", 0.6)
    monkeypatch.setattr(news, "LOOK_ANYWAY_S", 0.05)
    monkeypatch.setattr(news, "AWAY_S", 0.05)
    monkeypatch.setattr(upkeep, "SWEEP_EVERY_S", 0.05)
    monkeypatch.setattr(service, "PATIENCE_MS_MAX", 100)


@pytest.fixture
def calls(served, monkeypatch):
    """What is asked of the store; an answer waits until `open`, and is an error where `wrong` is one."""

    class Calls:
        asked, open, wrong = [], threading.Event(), None

    real, calls = served.backend.call, Calls()
    calls.open.set()

    def call(ask, **options):
        calls.asked.append(ask)
        assert calls.open.wait(PATIENCE_S)
        if calls.wrong is not None:
            raise calls.wrong
        return real(ask, **options)

    monkeypatch.setattr(served.backend, "call", call)
    yield calls
    calls.open.set()


def told(served, path="/readyz"):
    reply = served.ask("GET", path)
    assert reply.status == (200 if not reply.json["wrong"] else 503)
    return reply.json


def until(served, wanted, path="/readyz"):
    """The first answer that is as wanted."""
    deadline = time.monotonic() + PATIENCE_S
    while not wanted(found := told(served, path)):
        assert time.monotonic() < deadline, found
        served.loop.run_until_complete(asyncio.sleep(0.02))
    return found


def is_ready(found):
    return found["ready"]


def is_not(found):
    return not found["ready"]


def test_it_tells_ages_to_everybody_and_nothing_more(served):
    for path in ("/healthz", "/readyz"):
        reply = served.ask("GET", path)
        assert (reply.status, reply.json.keys()) == (200, AGES | {"ready", "wrong"})
        assert (reply.headers["content-type"], reply.headers["cache-control"]) == ("application/json", "no-store")
        assert all(reply.json[name] is None or isinstance(reply.json[name], int) for name in AGES)


def test_a_store_that_does_not_answer_is_told_in_time_and_it_recovers_by_itself(served, calls, quick):
    assert is_ready(told(served))
    calls.open.clear()
    stuck_at = time.monotonic()
    for path in ("/healthz", "/readyz"):
        found = until(served, is_not, path)
        assert found["wrong"] == ["answered"]
        began = time.monotonic()
        older = told(served, path)
        assert time.monotonic() - began < 1, "no answer waits for the store itself"
        assert older["answered_ms_ago"] > found["answered_ms_ago"] >= (time.monotonic() - stuck_at) * 500
    calls.open.set()
    assert until(served, is_ready)["answered_ms_ago"] < 1_000


def test_an_answer_is_as_old_as_its_question(served, calls):
    """One that was long under way says how it was then."""
    looking = Health(served.service, Upkeep(served.service))

    async def late():
        calls.open.clear()
        look = asyncio.create_task(looking._look_at_store())
        await asyncio.to_thread(eventually, lambda: calls.asked)
        assert looking.standing().answered_ms_ago is None
        asked_at = time.monotonic()
        await asyncio.sleep(0.3)
        calls.open.set()
        await look
        return looking.standing().answered_ms_ago >= (time.monotonic() - asked_at) * 1_000 > 300

    assert served.loop.run_until_complete(late())


def test_ob_02_errors_do_not_make_it_look_alive(served, calls, quick):
    calls.wrong = Unavailable("the disk is gone")
    for _ in range(5):
        assert told(served) == {"ready": False, "wrong": ["answered"], **dict.fromkeys(AGES)}
        served.loop.run_until_complete(asyncio.sleep(0.06))
    assert len(calls.asked) == 5, "it was asked each time"
    calls.wrong = None
    assert told(served)["ready"]


def test_many_who_want_to_know_share_one_look(served, calls):
    async def crowd():
        return await asyncio.gather(*(served_health._looked() for _ in range(200)))

    served_health = Health(served.service, Upkeep(served.service))
    assert all(one.ready for one in served.loop.run_until_complete(crowd()))
    assert calls.asked == [Changes()]


@contextmanager
def standing(served):
    """A way to see how a service stands that watches, and looks after, its store."""
    tending = Upkeep(served.service)
    looking = Health(served.service, tending)

    async def begin():
        served.service.news.begin()
        tending.begin()

    async def look(wanted):
        deadline = time.monotonic() + PATIENCE_S
        while not wanted(found := await looking._looked()):
            assert time.monotonic() < deadline, found
            await asyncio.sleep(0.02)
        return found

    async def end():
        served.service.news.stop()
        ending = looking.standing()
        await tending.end()
        return ending

    served.loop.run_until_complete(begin())
    yield lambda wanted: served.loop.run_until_complete(look(wanted))
    assert served.loop.run_until_complete(end()).wrong == ["stopping"]


def test_a_store_that_takes_no_writes_is_told_of_though_it_answers(served, quick):
    with standing(served) as look:
        look(lambda found: found.ready and found.wrote_ms_ago is not None)
        with write_lock_held(served.db):
            found = look(lambda found: not found.ready)
            assert (found.wrong, found.wrote_ms_ago > 600, found.answered_ms_ago < 600) == (["wrote"], True, True)
        assert look(lambda found: found.ready).wrote_ms_ago < 600


@pytest.mark.case("PG-03")
def test_a_watch_that_looks_no_more_is_told_of_though_the_store_answers(served, quick, monkeypatch):
    watch = served.backend.watch()
    real, wrong = type(watch).wait, []
    watch.close()

    def wait(self, seconds):
        if wrong:
            raise wrong[0]
        return real(self, seconds)

    monkeypatch.setattr(type(watch), "wait", wait)
    with standing(served) as look:
        look(lambda found: found.ready and found.looked_ms_ago is not None)
        wrong.append(Unavailable("away"))
        found = look(lambda found: not found.ready)
        assert (found.wrong, found.looked_ms_ago > 600) == (["looked"], True)
        wrong.clear()
        assert look(lambda found: found.ready).looked_ms_ago < 600
        assert found.silent_ms is None, "of a file there is no line that could fall silent"
