"""A server is treated badly while eight processes work over it: nothing that was acknowledged is lost."""

import os
import signal
import time

import pytest

from tests.faults.postgres.judge import judge
from tests.faults.postgres.load import Load
from tests.postgres import IMMEDIATE, PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.faults]

OURS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'relet'"
ONE = "SELECT pid FROM pg_stat_activity WHERE application_name = 'relet' AND state = 'active' LIMIT 1"
RECOVERY_S = 5.0


@pytest.fixture
def server():
    with PostgresServer() as server:
        yield server


@pytest.fixture
def url(server):
    return server.url()


def test_backends_are_terminated_twice_a_second(server, url, start, tmp_path, told):
    with Load(url, start, tmp_path) as load:
        load.flow()
        load.struck()
        for _ in range(10):
            server.execute(OURS)
            time.sleep(0.5)
        load.flow()
        story = load.finish()
        told(story)
        judge(story, url, load.db)
    assert story.recovered_s < RECOVERY_S


def test_the_server_is_stopped_as_by_a_crash_and_started_again(server, url, start, tmp_path, told):
    with Load(url, start, tmp_path) as load:
        load.flow()
        before = outages(server)
        load.struck()
        server.restart(IMMEDIATE)
        load.flow()
        story = load.finish()
        told(story)
        judge(story, url, load.db)
        assert outages(server) == before + 1
    assert story.recovered_s < RECOVERY_S


def test_one_backend_is_killed_and_the_server_recovers_by_itself(server, url, start, tmp_path, told):
    with Load(url, start, tmp_path) as load:
        load.flow()
        before = outages(server)
        started = server.value("SELECT pg_postmaster_start_time()")
        load.struck()
        while (pid := server.value(ONE)) is None:
            pass
        os.kill(pid, signal.SIGKILL)
        load.flow()
        story = load.finish()
        told(story)
        judge(story, url, load.db)
        assert server.value("SELECT pg_postmaster_start_time()") == started, "it was never stopped"
        assert outages(server) == before + 1, "and it was noticed all the same"
    assert story.recovered_s < RECOVERY_S


def outages(server):
    """How many the store has written down."""
    return server.value("SELECT count(*) FROM relet.events WHERE kind = 'outage'")
