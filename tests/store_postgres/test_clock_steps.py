"""The clock of the server, or of a client, is wrong: who holds what does not change."""

import threading
from pathlib import Path

import pytest

import relet
from tests.faults.test_wall_clock import PROGRAMS, Faked
from tests.postgres import PostgresServer
from tests.processes.fixtures import start  # noqa: F401 - a fixture
from tests.store_postgres.test_deadlocks import locked
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
HOUR_S = 3_600
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.fixture
def server():
    with PostgresServer(steered=True) as server:
        yield server


@pytest.fixture
def db(server):
    with relet.connect(server.url()) as client:
        yield client


def outages(server):
    return server.value(
        "SELECT coalesce(array_agg(detail ORDER BY seq), '{}') FROM relet.events WHERE kind = 'outage'"
    )


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
def test_a_lease_outlives_a_step_and_ends_in_its_time(server, db, step_s):
    db.submit_many("work", [1, 2])
    kept, dead = db.claim("work", ttl=60), db.claim("work", ttl=1)
    server.clock.step_to(step_s)
    kept.renew()
    assert db.claim("work") is None
    assert "stepped" in outages(server)[-1]
    taken = db.claim("work", wait=5)
    assert taken.task_id == dead.task_id
    assert taken.token > dead.token > kept.token
    kept.save("still mine")
    taken.complete()
    kept.complete()
    assert [task.losses for task in db.tasks(queue="work")] == [0, 0]


@pytest.mark.parametrize("verb", ["save", "complete", "renew"])
def test_a_step_while_a_verb_waits_for_its_row_ends_no_lease(server, db, verb):
    """It has read the clock before the step, and is judged by what it reads after it."""
    db.submit("work")
    lease = db.claim("work", ttl=60)
    told = []

    def ask():
        try:
            told.append(getattr(lease, verb)(*(["x"] if verb == "save" else [])))
        except relet.Error as wrong:
            told.append(wrong)

    thread = threading.Thread(target=ask)
    with locked(server.url(), lease):
        thread.start()
        if verb != "renew":
            eventually(lambda: server.value(WAITING))
        server.clock.step_to(HOUR_S)
    thread.join(10)
    assert not isinstance(told[0], relet.LeaseLost), told
    if verb != "complete":
        lease.renew()
        lease.complete()
    assert db.task(lease.task_id).state == "done"


def test_steps_to_and_fro_are_each_settled_once_however_many_notice(server, db):
    others = [relet.connect(server.url()) for _ in range(4)]
    db.submit_many("work", list(range(10)))
    leases = db.claim_many("work", 5, ttl=60)
    for other in others:
        other.submit("other")
    known = len(outages(server))
    for n, step_s in enumerate((HOUR_S, 0, -HOUR_S, 0), 1):
        server.clock.step_to(step_s)
        threads = [threading.Thread(target=other.submit, args=("other",)) for other in others]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert len(outages(server)) == known + n
    assert all(left > 59 for left in db.renew_many(leases))
    for other in others:
        other.close()


@pytest.mark.parametrize("offset_s", [600, -600])
def test_ec_01_a_client_whose_wall_clock_is_off_takes_no_live_lease(database, start, tmp_path, offset_s):  # noqa: F811
    with relet.connect(database) as db:
        held, dead = db.submit("work", ttl="60s"), db.submit("work", ttl="1s")
        lease = db.claim(task_id=held.id)
        assert 55 < lease.expires_in <= 60
        db.claim(task_id=dead.id)
        faked = Faked(Path(tmp_path), offset_s)
        sweeper = start(
            PROGRAMS / "unsleeping.py", PROGRAMS / "sweeper.py", database, "work", "0.05",
            environment=faked.environment,
        )  # fmt: skip
        assert sweeper.line() == "ready"
        assert sweeper.line() == f"took {dead.id}"
        lease.save("still mine")
        lease.complete()
        sweeper.process.stdin.close()
        (said,) = sweeper.rest()
        assert said.startswith("rounds ")
        assert db.task(held.id).attempt == 1
        lapsed = next(event for event in db.history(dead.id) if event.kind == "lapsed")
        assert 0 <= lapsed.detail["expired_ms_ago"] < 5_000
