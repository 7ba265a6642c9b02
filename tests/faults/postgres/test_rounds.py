"""Two hundred rounds of renewals, endings and sweeps of the same leases, for the deadlock that comes now and then."""

import pytest

import relet
from tests.postgres import PostgresServer
from tests.store_postgres.test_deadlocks import meet_no_deadlock

pytestmark = [pytest.mark.postgres, pytest.mark.faults, pytest.mark.slow]


@pytest.mark.parametrize("part", range(4))
def test_pg_06_two_hundred_rounds_meet_no_deadlock(part):
    with PostgresServer() as server, relet.connect(server.url()) as db:
        meet_no_deadlock(db, 50)
        assert db.backend.verify().findings == [], part
