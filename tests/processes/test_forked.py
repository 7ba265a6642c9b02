"""fork with a client in the parent: the child opens its own, keeps its own leases, and never hangs on a lock."""

from pathlib import Path

import pytest

from tests.processes.looking import is_in_a_file
from tests.processes.whole import is_whole

FORKED = Path(__file__).parent / "programs" / "forked.py"


@pytest.mark.slow
def test_hb_04_a_forked_child_keeps_its_lease_and_the_parent_its_own(db, start, url):
    own, work = db.submit("own"), db.submit("work")
    program = start(FORKED, url, "work")
    assert program.until("parent done") == ["child done", "status 0"]
    assert program.wait() == 0
    assert db.result(own.id) == "parent"
    assert db.result(work.id) != program.pid
    assert (db.task(own.id).losses, db.task(work.id).losses) == (0, 0)
    assert db.stats("work").queues[0].takeovers == 0
    assert is_whole(db)


@pytest.mark.slow
def test_hb_05_a_lock_that_another_thread_held_at_the_fork_keeps_no_child_waiting(db, start, url):
    own = db.submit("own")
    tasks = db.submit_many("work", [None] * 30)
    program = start(FORKED, url, "locks")
    lines = program.until("parent done")
    locks = [line.removeprefix("lock ") for line in lines if line.startswith("lock ")]
    told = [line.split() for line in lines if line.startswith("child ")]
    assert len(told) == len(locks), lines
    for part in ("db.backend.", "db.keeper.", "relet.client."):
        assert any(lock.startswith(part) for lock in locks), f"the walk finds the locks of {part}: {locks}"
    for lock, (_, said, took_s) in zip(locks, told, strict=True):
        assert said == "done", lock
        assert float(took_s) < 5, lock
    assert lines.count("status 0") == len(locks)
    assert db.result(own.id) == "parent"
    assert [db.task(task.id).state for task in tasks].count("done") == len(locks)
    assert is_whole(db)


@pytest.mark.slow
def test_hb_04_a_child_forked_within_a_transaction_of_another_thread_is_refused_clearly(db, start, url):
    """Where the lock of a file keeps it out. A server lets it in, by connections of its own."""
    own, work = db.submit("own"), db.submit("work")
    program = start(FORKED, url, "transaction")
    who, said, took_s = program.line().split()
    assert (who, said) == ("child", "RELET-FORKED" if is_in_a_file(db) else "done")
    assert float(took_s) < 5
    assert program.until("parent done") == ["status 0"]
    assert db.result(own.id) == "parent"
    assert db.task(work.id).state == ("ready" if is_in_a_file(db) else "done")
    assert is_whole(db)
