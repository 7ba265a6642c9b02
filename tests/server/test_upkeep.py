"""What nobody else sees to where all workers are behind the service: lapses are closed, old tasks leave."""

import asyncio
import threading

import pytest

from relet.client.blocking import Client
from relet.core.errors import Unavailable
from relet.core.rules.audit import AddAudit
from relet.server import upkeep
from relet.server.upkeep import Upkeep
from tests.waiting import eventually


@pytest.fixture
def tended(served, monkeypatch):
    monkeypatch.setattr(upkeep, "SWEEP_EVERY_S", 0.01)
    monkeypatch.setattr(upkeep, "PRUNE_EVERY_S", 0.02)

    def tended(until):
        async def run():
            tending = Upkeep(served.service)
            tending.begin()
            await asyncio.to_thread(eventually, until)
            served.service.news.stop()
            await tending.end()

        served.loop.run_until_complete(run())

    return tended


def test_memory_is_handed_back_in_a_thread(tended, monkeypatch):
    threads = []
    monkeypatch.setattr(upkeep, "give_back", lambda: threads.append(threading.current_thread()))
    tended(lambda: threads)
    assert threads[0] is not threading.main_thread()


def test_a_lapse_is_closed_though_nobody_claims(served, tended):
    task = served.db.submit("q", ttl="10s")
    served.db.claim("q")
    served.clock.advance("20s")
    tended(lambda: served.db.task(task.id).state == "ready")
    assert served.db.task(task.id).losses == 1


def test_what_is_past_the_retention_of_its_queue_leaves_whichever_tenant_it_is_of(served, tended):
    other = Client(served.of("b"), clock=served.clock)
    for db in (served.db, other):
        db.queue("q", retention="1m")
        db.submit("q")
        db.claim("q").complete("done")
        db.submit("q", id="later")  # the newest events of a store stay
    served.clock.advance("2m")
    tended(lambda: all([task.id for task in db.tasks()] == ["later"] for db in (served.db, other)))


def test_a_store_that_is_away_ends_nothing(served, tended, monkeypatch):
    ask, away = served.service.ask, []

    async def once(tenant, request, patience_ms=None):
        if len(away) < 3:
            away.append(request)
            raise Unavailable("away")
        return await ask(tenant, request, patience_ms)

    monkeypatch.setattr(served.service, "ask", once)
    task = served.db.submit("q", ttl="10s")
    served.db.claim("q")
    served.clock.advance("20s")
    tended(lambda: served.db.task(task.id).state == "ready")
    assert len(away) == 3


def test_that_the_store_takes_writes_is_proven_by_one_now_and_then(served, tended, monkeypatch):
    monkeypatch.setattr(upkeep, "PROVE_EVERY_S", 0.02)
    operate, asked = served.service.operate, []

    async def seen(ask):
        asked.append(ask)
        return await operate(ask)

    monkeypatch.setattr(served.service, "operate", seen)
    tended(lambda: len(asked) > 1)
    assert all(ask == AddAudit(acts=[]) for ask in asked)


def test_that_write_is_one(served):
    """A row that is set to what it is would prove nothing."""
    before = served.backend.store.version()
    served.backend.operate(AddAudit(acts=[]))
    assert served.backend.store.version() != before
