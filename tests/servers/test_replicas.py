"""A primary and its standby: what outlives the primary."""

import select

import psycopg
import pytest

from tests.replicas import Replicas

pytestmark = pytest.mark.slow
VERSIONS = ["18", pytest.param("15", marks=pytest.mark.faults)]
TIMELINE = "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("synchronous", [True, False])
def test_a_promoted_standby_has_what_it_received_and_takes_the_writes(version, synchronous):
    with Replicas(version, synchronous=synchronous) as pair:
        assert pair.primary.value(TIMELINE) == "00000001"
        with psycopg.connect(pair.url(), autocommit=True) as connection:
            assert connection.info.port == pair.primary.port
            connection.execute("CREATE TABLE kept (it int)")
            connection.execute("INSERT INTO kept VALUES (7)")
        if not synchronous:
            pair.catch_up()
        pair.kill_primary()
        pair.promote()
        with psycopg.connect(pair.url(), autocommit=True) as connection:
            assert connection.info.port == pair.standby.port
            assert connection.execute("SELECT it FROM kept").fetchall() == [(7,)]
            connection.execute("INSERT INTO kept VALUES (8)")
            assert connection.execute(TIMELINE).fetchone() == ("00000002",)


def test_a_commit_that_a_parted_standby_does_not_confirm_is_not_answered():
    """And no timeout of the server ends the wait: they all end where a commit begins."""
    with Replicas() as pair:
        pair.primary.execute("CREATE TABLE kept (it int)")
        pair.part()
        with psycopg.connect(pair.url(), autocommit=True) as connection:
            connection.execute("SET statement_timeout = '10ms'")
            connection.pgconn.send_query(b"INSERT INTO kept VALUES (7)")
            assert select.select([connection], [], [], 0.1)[0] == []
            connection.cancel_safe()
            results = iter(connection.pgconn.get_result, None)
            assert [result.command_status for result in results] == [b"INSERT 0 1"]
        assert "canceling wait for synchronous replication due to user request" in pair.primary.log


@pytest.mark.faults
def test_each_of_the_two_has_a_wall_clock_of_its_own():
    with Replicas(steered=True) as pair:
        pair.standby.clock.step_to(3_600)
        now = "SELECT extract(epoch FROM clock_timestamp())::float8"
        assert 3_590 < pair.standby.value(now) - pair.primary.value(now) < 3_610


def test_what_an_asynchronous_primary_acknowledged_after_they_were_parted_is_lost():
    with Replicas(synchronous=False) as pair:
        pair.primary.execute("CREATE TABLE kept (it int)")
        pair.catch_up()
        pair.part()
        pair.primary.execute("INSERT INTO kept VALUES (7)")
        pair.kill_primary()
        pair.promote()
        assert pair.standby.value("SELECT count(*) FROM kept") == 0
