"""Tasks that are longer than many ttls stay with their holder, whoever sweeps, and beat in time."""

import random
import threading
import time
from pathlib import Path

import pytest

import relet
from tests.processes.recording import gaps_s, record_beats
from tests.processes.whole import is_whole
from tests.waiting import eventually

pytestmark = pytest.mark.faults
SWEEPER = Path(__file__).parents[1] / "processes" / "programs" / "sweeper.py"


def test_hb_10_a_task_of_twenty_ttls_is_not_taken_over_by_two_sweepers(db, start, url):
    app = relet.App()

    @app.task("long", ttl="1s")
    def long(run):
        time.sleep(20)
        return run.attempt

    sweepers = [start(SWEEPER, url, "long", "0.2") for _ in range(2)]
    assert [sweeper.line() for sweeper in sweepers] == ["ready"] * 2
    with app.worker(db):
        task = long.submit(db)
        assert db.result(task.id, wait=60) == 1
    for sweeper in sweepers:
        sweeper.process.stdin.close()
        (said,) = sweeper.rest()
        assert int(said.removeprefix("rounds ")) > 50
    assert (db.task(task.id).losses, db.stats("long").queues[0].takeovers) == (0, 0)
    assert is_whole(db)


def test_ck_06_a_holder_that_renews_and_saves_at_the_same_time_is_never_refused_until_it_is_taken_over(db):
    """On threads of its own each, as keeper and handler are, so that they meet in every order."""
    db.submit("work", id="t", ttl="1s")
    lease = db.claim("work")
    ended, renewed = threading.Event(), []

    def renew():
        while not ended.wait(0.05):
            renewed.append(lease.renew())

    thread = threading.Thread(target=renew)
    thread.start()
    until, saved = time.monotonic() + 20, 0
    while time.monotonic() < until:
        saved = lease.save(saved)
        time.sleep(0.02)
    ended.set()
    thread.join()
    assert (len(db.rejections("t")), set(renewed)) == (0, {1.0})
    assert len(renewed) > 100
    assert saved > 200
    successor = eventually(lambda: db.claim(task_id="t", holder="B"))
    before = len(db.history("t"))
    with pytest.raises(relet.LeaseLost) as lost:
        lease.save("late")
    assert lost.value.reason == "superseded"
    assert (len(db.history("t")), successor.load()) == (before, saved - 1)
    assert is_whole(db)


def test_ec_08_renewals_that_the_store_took_in_are_less_than_half_a_ttl_apart(db):
    """Thirty tasks of two ttls and more, at once, each of another length."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    app = relet.App()
    record_beats(db)

    @app.task("long", ttl="3s")
    def long(run, seconds: float):
        time.sleep(seconds)

    tasks = [long.submit(db, chance.uniform(6, 12)) for _ in range(30)]
    assert app.run_until_idle(db, concurrency=30) == 30
    for task in tasks:
        found = db.task(task.id)
        assert (found.state, found.attempt, found.losses) == ("done", 1, 0), f"seed {seed}"
        assert max(gaps_s(db, found.token)) < 1.5, f"seed {seed}"
