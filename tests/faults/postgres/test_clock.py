"""The wall clock of the server is stepped under load: nobody alive is taken over, and nobody dead is forgotten."""

import time

import pytest

from tests.faults.postgres.judge import judge, rows
from tests.faults.postgres.load import QUEUE, Load
from tests.postgres import PostgresServer
from tests.waiting import eventually

pytestmark = [pytest.mark.postgres, pytest.mark.faults]
HOUR_S = 3_600
TTL_S = 3
LATE_S = 5.0


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
def test_leases_do_not_follow_a_step_of_the_clock(start, tmp_path, told, step_s):
    with PostgresServer(steered=True) as server, Load(server.url(), start, tmp_path) as load:
        load.flow()
        db = load.db
        kept = db.submit("kept")
        with (live := db.claim("kept", ttl=TTL_S)).keep():
            forgotten = db.submit("forgotten")
            dead = db.claim("forgotten", ttl=TTL_S)
            load.struck()
            server.clock.step_to(step_s)
            load.flow()
            began = time.monotonic()
            found = eventually(lambda: db.claim("forgotten", wait=1), within=TTL_S + LATE_S)
            assert found.task_id == forgotten.id
            assert found.token > dead.token
            assert found.attempt == 1, "what is lost by an outage is not counted"
            assert time.monotonic() - began <= TTL_S + LATE_S
            found.complete()
            load.flow()
            live.check()
            assert (db.task(kept.id).token, db.task(kept.id).live) == (live.token, True)
            live.save("still mine")
        live.complete()
        assert (db.task(kept.id).attempt, db.task(kept.id).losses) == (1, 0)
        story = load.finish()
        told(story)
        judge(story, server.url(), db)
        lapsed = rows(server.url(), "SELECT count(*) FROM relet.events e JOIN relet.tasks t ON t.seq = e.task_seq "
                      f"WHERE e.kind = 'lapsed' AND t.queue = '{QUEUE}'")  # fmt: skip
        assert lapsed == [(0,)], "those at work were not taken over either"
    assert story.recovered_s < LATE_S
