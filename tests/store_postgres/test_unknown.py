"""That nothing was written is said only where nothing was: a second try that fails says nothing of the first."""

import logging

import pytest

import relet
from relet.client import asks
from relet.client.files import raw
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completion
from relet.store.postgres.engine import PostgresStore
from relet.store.postgres.faults import unknown_outcome
from tests.waiting import Gate, eventually

pytestmark = pytest.mark.postgres
PATIENCE_MS = 300


@pytest.fixture
def url(tcp_server, proxy):
    with tcp_server.database(at=proxy.url) as url:
        yield url


def test_a_commit_that_was_kept_and_cannot_be_asked_about_is_unknown(proxy, url):
    with relet.connect(url) as db:
        task = db.submit("q")
        lease = db.claim("q", ttl=60)
        requests = [
            asks.submit("q", [1], ["new"]), asks.cancel(task.id, "enough"),
            asks.save(lease.belief.grant.handle, raw("value", 1), "main"),
        ]  # fmt: skip
        for ask in requests:
            proxy.pass_on()
            db.stats()
            proxy.drop_new()
            proxy.cut_after(b"COMMIT")
            with pytest.raises(relet.OutcomeUnknown) as told:
                db.backend.call(ask, patience_ms=PATIENCE_MS)
            assert proxy.fired.is_set()
            assert "nothing was written" not in str(told.value)
            assert isinstance(told.value.__cause__, relet.Unavailable)
        proxy.pass_on()
        assert db.task("new").state == "ready", "it was kept"


@pytest.mark.parametrize("wrong", [relet.Forbidden("not let in"), relet.Invalid("no such database")])
def test_whatever_keeps_the_second_try_away_says_nothing_of_the_first(url, monkeypatch, wrong):
    answers = [unknown_outcome("cut"), wrong]

    def call(self, ask, tenant, patience_ms=None):
        raise answers.pop(0)

    with relet.connect(url) as db:
        monkeypatch.setattr(PostgresStore, "call", call)
        with pytest.raises(relet.OutcomeUnknown):
            db.submit("q")
        monkeypatch.undo()


def test_results_that_were_taken_are_not_denied_for_the_claim_that_comes_with_them(url):
    """Only the claim has to wait, for others count the limit of its queue."""
    with relet.connect(url) as db, relet.connect(url) as other:
        db.queue("q", concurrency=5)
        db.submit_many("q", [1, 2])
        lease = db.claim("q", ttl=60)
        ask = Complete(
            completions=[Completion(handle=lease.belief.grant.handle, result=raw("result", "done"))],
            next=asks.claim("q", "h"),
        )  # fmt: skip
        with other.backend.store.calls.borrowed(1) as mine, mine.transaction():
            mine.execute("SELECT 1 FROM relet.queues FOR UPDATE")
            with pytest.raises(relet.OutcomeUnknown):
                db.backend.call(ask, patience_ms=PATIENCE_MS)
        assert db.task(lease.task_id).state == "done"


def test_a_worker_asks_again_for_what_it_may_have_been_granted(proxy, url, tcp_server, monkeypatch):
    """The network is gone with the answer, and comes back in time."""
    with relet.connect(url) as db, relet.connect(tcp_server.tcp_url(url.rpartition("/")[2])) as near:
        app, cut = relet.App(), Gate()
        app.task("work", ttl=60)(lambda run: run.attempt)
        lose_the_answer(monkeypatch, db, proxy, cut)
        with app.worker(db) as worker:
            task = near.submit("work")
            cut.pass_through()
            eventually(lambda: worker._lookout.owed is not None)
            proxy.pass_on()
            assert near.result(task.id, wait=15) == 1


def test_a_worker_that_hears_too_late_of_what_it_was_granted_goes_on(proxy, url, tcp_server, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    with relet.connect(url) as db, relet.connect(tcp_server.tcp_url(url.rpartition("/")[2])) as near:
        app, cut = relet.App(), Gate()
        app.task("work", ttl=0.5)(lambda run: run.attempt)
        lose_the_answer(monkeypatch, db, proxy, cut)
        with app.worker(db) as worker:
            near.submit("work")
            cut.pass_through()
            assert eventually(lambda: near.claim("work", ttl=60)).attempt == 2
            proxy.pass_on()
            assert near.result(near.submit("work").id, wait=15) == 1
            assert worker.fault is None
    assert "has lost before it heard of it" in caplog.text
    assert not [record for record in caplog.records if record.name.startswith("psycopg")]


def lose_the_answer(monkeypatch, db, proxy, cut):
    """Of the first claim that is granted something, and the network with it."""
    once = PostgresStore._once

    def cut_off(self, left_s, operation, ask, *rest, **named):
        answered = once(self, left_s, operation, ask, *rest, **named)
        if self is db.backend.store and type(ask) is Claim and answered[0] and not cut.is_set():
            proxy.drop_new()
            proxy.cut()
            cut.set()
            raise unknown_outcome("cut")
        return answered

    monkeypatch.setattr(PostgresStore, "_once", cut_off)
