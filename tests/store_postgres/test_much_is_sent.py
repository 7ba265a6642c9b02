"""What takes long because much is sent is waited for; a silence is not."""

import time

import pytest

import relet
from relet.store.postgres import connect, engine, pool
from tests.cut_connection import Proxy
from tests.postgres import PostgresServer

pytestmark = pytest.mark.postgres
KB = 1_000
EACH, N = 100 * KB, 40
"""Pieces of 64 KB of a proxy, each of which is late."""
LATE_S = 0.05


@pytest.fixture(scope="module")
def server():
    with PostgresServer(tcp=True) as server:
        yield server


@pytest.fixture(params=["calls", "transactions"])
def hasty(request, monkeypatch):
    """Either the client or the server would lose patience, were it not for what is sent."""
    if request.param == "calls":
        monkeypatch.setattr(pool, "ANSWER_S_MIN", 0.1)
        monkeypatch.setattr(engine, "ANSWER_S", 0.5)
        monkeypatch.setattr(engine, "PATIENCE_MS", 500)
    else:
        monkeypatch.setattr(connect, "TRANSACTION_S", 1)
        monkeypatch.setattr(engine, "TRANSACTION_S", 1)


def test_a_submit_and_a_completion_of_much_are_taken(server, hasty):
    with Proxy(server) as proxy, server.database(at=proxy.url) as url, relet.connect(url) as db:
        db.submit("other")
        proxy.delay(LATE_S)
        began = time.monotonic()
        assert len(db.submit_many("q", ["x" * EACH] * N)) == N
        assert time.monotonic() - began > 2, "it did take long"
        proxy.pass_on()
        leases = db.claim_many("q", N, ttl=60)
        proxy.delay(LATE_S)
        outcomes = db.complete_many([(lease, "y" * EACH) for lease in leases])
        proxy.pass_on()
        assert [outcome.state for outcome in outcomes] == ["done"] * N
        assert (len(db.tasks("q", limit=1_000)), db.verify().findings) == (N, [])
