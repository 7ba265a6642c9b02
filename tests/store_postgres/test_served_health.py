"""`relet serve` over a database that stands still: it says so in time, says no more than it knows, and recovers."""

import time

import httpx2
import pytest

from tests.postgres import PostgresServer
from tests.server.test_serve import Serving
from tests.waiting import eventually

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
IN_TIME_S = 8.0
RECOVERY_S = 30.0
"""Calls that were under way give up after ten seconds, and connections are made anew."""


@pytest.mark.case("PG-03")
def test_a_service_over_a_frozen_database_is_not_ready_and_is_again_when_it_goes_on():
    with PostgresServer() as server, server.database() as url:
        served = Serving(url, 0, "--insecure-no-auth")
        try:
            with httpx2.Client(base_url=served.url, timeout=10) as http:
                _judge(server, http)
        finally:
            served.process.kill()
            served.process.wait()
            served.process.stderr.close()


def _judge(server, http):
    def told(path="/readyz"):
        began = time.monotonic()
        reply = http.get(path)
        assert time.monotonic() - began < 4, "no answer waits for the database"
        return reply.status_code, reply.json()

    status, found = eventually(lambda: (one := told())[1]["wrote_ms_ago"] and one)
    assert (status, found["wrong"], found["silent_ms"] < 15_000) == (200, [], True)
    server.freeze()
    frozen_at = time.monotonic()
    try:
        for path in ("/readyz", "/healthz"):
            eventually(lambda path=path: told(path)[0] == 503, within=IN_TIME_S)
        asked_at = time.monotonic()
        found = told()[1]
        assert "answered" in found["wrong"]
        for age in ("answered_ms_ago", "wrote_ms_ago", "silent_ms"):
            assert found[age] >= (asked_at - frozen_at) * 1_000, "nothing of it has been true since then"
        assert found["looked_ms_ago"] < 5_000, "who waits here still looks, and finds nothing"
    finally:
        server.thaw()
    eventually(lambda: told()[0] == 200, within=RECOVERY_S)
    eventually(lambda: told()[1]["silent_ms"] < 15_000, within=RECOVERY_S)
