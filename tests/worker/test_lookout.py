"""When a worker looks for work: not while nothing happens, at once when something does, and in time by itself."""

import time
from collections import Counter

import apsw
import pytest

import relet
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.core.rules.glance import Glance
from relet.core.rules.sweep import Sweep
from relet.worker import lookout
from relet.worker import worker as worker_module
from relet.worker.worker import Worker
from tests.waiting import Gate, eventually
from tests.write_lock import write_lock_held

FAR_S = 60


@pytest.fixture
def asked(db, monkeypatch):
    """How often each kind of request was sent, and the completions themselves."""
    call, asked = db.backend.call, Counter()
    asked.completions = []

    def counting(ask, **how):
        asked[type(ask)] += 1
        if isinstance(ask, Complete):
            asked.completions.append(ask)
        return call(ask, **how)

    monkeypatch.setattr(db.backend, "call", counting)
    return asked


@pytest.fixture
def by_itself(monkeypatch):
    """No look but the one that is due: what is taken was waited for to the millisecond, and not met by chance."""
    monkeypatch.setattr(lookout, "POLL_S", FAR_S)
    monkeypatch.setattr(lookout, "GLANCE_ANYWAY_S", FAR_S)
    monkeypatch.setattr(worker_module, "SWEEP_EVERY_S", FAR_S)


@pytest.fixture
def restless(monkeypatch):
    """Looks again and again, so that what a look costs is seen soon."""
    monkeypatch.setattr(lookout, "GLANCE_ANYWAY_S", 0)


def test_an_idle_worker_asks_for_no_lock_and_writes_nothing(db, app, asked, restless, monkeypatch):
    monkeypatch.setattr(worker_module, "SWEEP_EVERY_S", 0.01)
    app.task("work")(lambda run: None)
    db.submit("other")
    db.claim("other", ttl=FAR_S)
    with app.worker(db) as worker:
        eventually(lambda: asked[Glance] >= 1)
        outside = apsw.Connection(db.place)
        before, looks, claims = outside.pragma("data_version"), asked[Glance], asked[Claim]
        eventually(lambda: asked[Glance] >= looks + 5)
        assert asked[Claim] == claims
        assert outside.pragma("data_version") == before
        outside.close()
        assert worker.attempts == 0


def test_with_every_kind_at_its_limit_a_worker_rests_though_slots_are_free_and_tasks_are_left(
    db, app, by_itself, monkeypatch
):
    begun, go_on = Gate(), Gate()
    rounds, turn_over = Counter(), Worker._turn_over
    monkeypatch.setattr(
        Worker, "_turn_over", lambda worker, *given: rounds.update(["round"]) or turn_over(worker, *given)
    )

    @app.task("work", concurrency=1)
    def work(run):
        begun.set()
        go_on.pass_through()

    tasks = db.submit_many("work", [None] * 2)
    with app.worker(db, concurrency=4) as worker:
        begun.pass_through()
        eventually(lambda: rounds["round"] >= 1)
        # Each of these wakes it once; one that does not rest makes thousands of rounds meanwhile.
        for _ in range(20):
            worker._lookout.wake()
            time.sleep(0.001)
        assert rounds["round"] <= 30
        go_on.set()
        assert [db.result(task.id, wait=15) for task in tasks] == [None, None]


def test_what_others_may_not_have_wakes_nobody(db, app, asked, restless):
    app.task("work")(lambda run: "done")
    with app.worker(db):
        eventually(lambda: asked[Glance] >= 1)
        db.submit("work", kind="unknown")
        looks = asked[Glance]
        eventually(lambda: asked[Glance] >= looks + 3)
        assert asked[Claim] == 1
        assert db.result(db.submit("work").id, wait=15) == "done"


def test_a_commit_of_somebody_else_wakes_it(db, app, by_itself):
    app.task("work")(lambda run: "done")
    with app.worker(db) as worker, relet.connect(f"sqlite:///{db.place}") as other:
        eventually(lambda: worker._lookout.found_nothing)
        for _ in range(3):
            assert other.result(other.submit("work").id, wait=15) == "done"
        worker.abort()


def test_whichever_of_many_limited_kinds_it_is_of_a_commit_wakes_it(db, app, by_itself):
    for name in "abc":
        app.task(name, queue="work", concurrency=1)(lambda run: "done")
    with app.worker(db) as worker, relet.connect(f"sqlite:///{db.place}") as other:
        eventually(lambda: worker._lookout.found_nothing)
        for kind in "abcbca":
            assert other.result(other.submit("work", kind=kind).id, wait=15) == "done"
        worker.abort()


def test_a_delayed_task_is_taken_when_it_falls_due(db, app, by_itself):
    app.task("work")(lambda run: "done")
    with app.worker(db) as worker:
        task = db.submit("work", delay=0.2)
        assert db.result(task.id, wait=15) == "done"
        worker.abort()


def test_a_lease_that_lapses_is_taken_over_when_it_does(db, app, by_itself):
    app.task("work")(lambda run: run.attempt)
    task = db.submit("work")
    db.claim("work", ttl=0.3)
    with app.worker(db) as worker:
        assert db.result(task.id, wait=15) == 2
        worker.abort()


def test_while_all_slots_are_taken_nobody_looks(db, app, asked, restless):
    started, gate = Gate(), Gate()

    @app.task("work")
    def work(run):
        started.set()
        gate.pass_through()

    work.submit(db)
    with app.worker(db) as worker:
        started.pass_through()
        db.submit("work")
        before, heeded = asked[Glance] + asked[Claim], worker._heed_at
        eventually(lambda: worker._heed_at > heeded)  # it has had its turns
        assert asked[Glance] + asked[Claim] == before
        gate.set()


def test_a_task_that_failed_and_is_ready_again_is_not_left_by_a_worker_that_ends_when_idle(db, app, monkeypatch):
    monkeypatch.setattr(lookout.Lookout, "_sees_work", lambda *_: False)

    @app.task("work", retry=relet.RetryPolicy(max_attempts=3, base=0))
    def work(run):
        if run.attempt < 3:
            raise ValueError("not yet")
        return "done"

    task = work.submit(db)
    assert app.run_until_idle(db) == 3
    assert db.task(task.id).result == "done"


def test_handlers_that_end_together_are_handed_in_together_and_the_next_are_claimed_with_that(db, app, asked):
    @app.task("work")
    async def work(run):
        return "done"

    db.submit_many("work", [None] * 16)
    assert app.run_until_idle(db, concurrency=8) == 16
    assert [len(ask.completions) for ask in asked.completions] == [8, 8]
    assert [ask.next.n for ask in asked.completions] == [8, 8]
    assert asked[Claim] <= 2


def test_others_that_commit_all_the_time_are_looked_at_now_and_then(db, app, asked, monkeypatch):
    monkeypatch.setattr(lookout, "GLANCE_EVERY_S", 0.2)
    app.task("work")(lambda run: None)
    with app.worker(db) as worker:
        eventually(lambda: worker._lookout.found_nothing)
        before, began = asked[Glance], time.monotonic()
        for number in range(50):
            db.submit("other", number)
        assert asked[Glance] - before <= (time.monotonic() - began) / 0.2 + 2, "not one for each commit"


def test_a_store_that_cannot_be_looked_at_for_a_while_ends_no_worker(db, app, monkeypatch):
    monkeypatch.setattr(lookout, "BACK_OFF_S", 0.01)
    version, call, away = db.backend.store._read.version, db.backend.call, [True]

    def unless_away(answer):
        def answered(*args, **how):
            if away and not (args and isinstance(args[0], (Claim, Sweep))):
                refused.append(args)
                raise relet.Unavailable("away")
            return answer(*args, **how)

        return answered

    refused = []
    monkeypatch.setattr(db.backend.store._read, "version", unless_away(version))
    monkeypatch.setattr(db.backend, "call", unless_away(call))
    app.task("work")(lambda run: "done")
    with app.worker(db) as worker:
        eventually(lambda: len(refused) >= 2)
        away.clear()
        assert db.result(db.submit("work").id, wait=15) == "done"
        assert worker.fault is None


def test_a_commit_in_memory_wakes_it_too(app, by_itself):
    app.task("work")(lambda run: "done")
    with relet.connect("sqlite://") as db, app.worker(db) as worker:
        eventually(lambda: worker._lookout.found_nothing)
        task = db.submit("work")
        eventually(lambda: db.task(task.id).state == "done")
        worker.abort()


def test_who_meets_others_at_the_lock_looks_again_instead_of_waiting_for_it(db, app, asked):
    app.task("work")(lambda run: "done")
    with app.worker(db) as worker:
        eventually(lambda: worker._lookout.found_nothing)
        task, claims = db.submit("work", delay=0.1), asked[Claim]
        with write_lock_held(db):
            eventually(lambda: worker._lookout._gave_way >= lookout.GIVE_WAY_MAX)
        assert db.result(task.id, wait=15) == "done"
        assert asked[Claim] > claims + lookout.GIVE_WAY_MAX, "the last one waits as any other"


def test_after_trouble_of_another_kind_the_next_claim_waits_as_any_other(db, app):
    app.task("work")(lambda run: "done")
    lookout_of = app.worker(db)._lookout
    lookout_of._saw_work = True
    assert lookout_of.patience_ms == lookout.PATIENCE_MS
    assert not lookout_of.gives_way(relet.Unavailable("no answer came in time"), time.monotonic())
    lookout_of.back_off(time.monotonic())
    assert lookout_of.patience_ms is None


def test_its_own_commits_are_not_in_vain_and_those_of_others_are(db, app, monkeypatch):
    app.task("work")(lambda run: "done")
    with app.worker(db) as worker:
        for _ in range(5):
            assert db.result(db.submit("work").id, wait=15) == "done"
        assert worker._lookout._vain_s == 0
        monkeypatch.setattr(lookout, "OWN_S", 0)
        eventually(lambda: db.submit("other") and worker._lookout._vain_s)
        monkeypatch.undo()
        assert db.result(db.submit("work").id, wait=15) == "done"
        eventually(lambda: worker._lookout._vain_s == 0)


def test_who_was_told_in_vain_waits_to_be_told_again_once_nobody_commits_any_more(db, app, monkeypatch):
    app.task("work")(lambda run: "done")
    monkeypatch.setattr(lookout, "CALM_S", 0.1)
    monkeypatch.setattr(lookout, "OWN_S", 0)
    with app.worker(db) as worker:
        eventually(lambda: db.submit("other") and worker._lookout._vain_s)
        eventually(lambda: worker._lookout._vain_s == 0)
