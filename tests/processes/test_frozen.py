"""A process is stopped for longer than its ttl: its task passes on, and it is told so before it writes."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.processes.freezing import freeze, thaw
from tests.processes.program import gone, living_in_group
from tests.processes.whole import is_whole, rows

PROGRAMS = Path(__file__).parent / "programs"
EXEC = Path(__file__).parents[1] / "worker" / "programs" / "exec_program.py"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["blocking", "awaiting"])
def test_ec_10_a_woken_worker_is_told_its_writes_are_refused_and_it_goes_on(db, start, url, kind):
    task = db.submit("work", kind=kind)
    program = start(PROGRAMS / "frozen_worker.py", url, kind)
    said, token = program.line().split()
    assert said == "saved"
    freeze(program, db)

    lease = db.claim("work", wait=15, ttl="60s")
    assert (lease.task_id, lease.attempt, lease.load()) == (task.id, 2, "half")
    assert lease.token > int(token)
    assert (lease.took_over.token, lease.took_over.holder) == (int(token), "frozen")
    lease.save("more than half")
    before = rows(db)

    thaw(program)
    assert program.line() in ("told expired", "told superseded")
    assert program.line() == "save refused superseded"
    assert program.line() == "complete refused superseded"
    assert rows(db) == before

    other = db.submit("work", kind="other")
    assert program.line() == f"other done by {program.pid}"
    assert db.result(other.id, wait=10) == "done"
    lease.complete("by the next holder")
    assert db.result(task.id) == "by the next holder"
    assert db.stats("work").queues[0].takeovers == 1
    refused = db.rejections(task.id)
    assert {(one.token, one.current_token) for one in refused} == {(int(token), lease.token)}
    assert "zombie" in [one.result for one in refused]
    program.send(signal.SIGTERM)
    assert program.wait() == 0
    assert is_whole(db)


@pytest.mark.slow
def test_ts_01_two_workers_one_frozen_make_one_takeover(db, start, url):
    task = db.submit("work", kind="blocking")
    first = start(PROGRAMS / "frozen_worker.py", url, "blocking")
    first_token = int(first.line().split()[1])
    freeze(first, db)
    second = start(PROGRAMS / "frozen_worker.py", url, "blocking")
    second_token = int(second.line(within=20).split()[1])
    assert second_token > first_token
    thaw(first)
    assert first.line().startswith("told ")
    assert first.line() == "save refused superseded"
    assert first.line() == "complete refused superseded"
    other = db.submit("work", kind="other")
    assert first.line() == f"other done by {first.pid}"
    assert db.result(other.id, wait=10) == "done"
    assert (db.task(task.id).token, db.task(task.id).live) == (second_token, True)
    assert db.stats("work").queues[0].takeovers == 1


@pytest.mark.slow
def test_ec_10_a_woken_exec_kills_its_program_and_hands_in_nothing(db, start, url):
    """The program itself was never stopped, and worked on under a lease that nobody renewed."""
    task = db.submit("work", ttl="1s")
    program = start(
        EXEC, url, "work", json.dumps({"grace": "0.2s"}), "sh", "-c", "sleep 300 & sleep 300 & echo $$; wait"
    )
    group = int(program.line())
    try:
        freeze(program, db)
        lease = db.claim("work", wait=15, ttl="60s")
        assert (lease.task_id, lease.attempt) == (task.id, 2)
        before = rows(db)
        thaw(program)
        assert program.wait() == 5
        assert gone(group)
        assert rows(db) == before
    finally:
        if living_in_group(group):
            os.killpg(group, signal.SIGKILL)


@pytest.mark.slow
def test_p9_a_killed_workers_task_can_be_claimed_once_its_ttl_is_over(db, start, url):
    task = db.submit("work", kind="blocking")
    program = start(PROGRAMS / "frozen_worker.py", url, "blocking")
    program.line()
    program.process.kill()
    lease = db.claim("work", wait=10)
    assert (lease.task_id, lease.attempt, lease.load()) == (task.id, 2, "half")
    lapsed = next(event for event in db.history(task.id) if event.kind == "lapsed")
    # Closed by the first look after expiry: within one poll of the waiting claimer.
    assert lapsed.detail["expired_ms_ago"] < 2_000
