"""The store cannot be reached for a while: work goes on, nothing is lost or run twice, results come in later."""

import contextlib
import os
import threading
from collections import Counter

import apsw
import pytest

import relet
from relet.core.rules.park import Park
from relet.core.rules.sweep import Sweep
from relet.core.trust import Status
from relet.store.sqlite import lane
from relet.worker import handin, lookout, trouble
from relet.worker import worker as worker_module
from relet.worker.execute import Unsettled
from relet.worker.worker import Worker
from tests.waiting import Gate, eventually
from tests.write_lock import write_lock_held


@pytest.fixture
def impatient(monkeypatch):
    """Give up on a locked store soon, so that what happens then is seen soon."""
    monkeypatch.setattr(lane, "PATIENCE_MS", 60)
    monkeypatch.setattr(handin, "PATIENCE_MS_MAX", 60)


@pytest.mark.parametrize("ending", ["returns", "raises"])
def test_what_ends_while_the_store_is_away_is_handed_in_later(db, app, impatient, ending):
    started, gate, ended = Gate(), Gate(), Gate()

    @app.task("work", retry=relet.RetryPolicy(max_attempts=1))
    def work(run):
        started.set()
        gate.pass_through()
        ended.set()
        if ending == "raises":
            raise relet.Permanent("never", code="NEVER")
        return "kept"

    task, waiting = work.submit(db), work.submit(db)
    with app.worker(db) as worker:
        started.pass_through()
        with write_lock_held(db):
            gate.set()
            ended.pass_through()
            eventually(lambda: worker._hand_in.pending)
            assert db.task(task.id).live
        eventually(lambda: db.task(waiting.id).state in ("done", "failed"))
    found = db.task(task.id)
    assert (found.result, found.code) == (("kept", None) if ending == "returns" else (None, "NEVER"))
    assert found.losses == 0
    assert len([event for event in db.history(task.id) if event.kind == "claimed"]) == 1


def test_a_lease_is_kept_while_it_cannot_be_told_that_its_task_waits_for_an_effect(db, app, monkeypatch):
    call, away = db.backend.call, [True]

    def unavailable(ask, **how):
        if isinstance(ask, Park) and away:
            raise relet.Unavailable("away for this one")
        return call(ask, **how)

    monkeypatch.setattr(db.backend, "call", unavailable)

    def send(payload, effect):
        raise OSError("reset")

    @app.task("work")
    def work(run):
        with contextlib.suppress(OSError):
            run.effect("send", 1, send, contract=relet.Natural())

    task = work.submit(db)
    with app.worker(db) as worker:
        eventually(lambda: [outcome for _, outcome in worker._hand_in.pending if isinstance(outcome, Unsettled)])
        assert [belief.grant.handle.task_id for belief in db.keeper._kept] == [task.id]
        away.clear()
        eventually(lambda: db.task(task.id).state == "waiting")
        eventually(lambda: not db.keeper._kept)
    assert db.task(task.id).losses == 0


def test_what_cannot_be_told_before_the_worker_ends_is_left_to_lapse_and_is_kept_by_nobody(db, app, impatient):
    started, gate = Gate(), Gate()

    @app.task("work")
    def work(run):
        started.set()
        gate.pass_through()

    task = work.submit(db)
    with contextlib.ExitStack() as away:
        with app.worker(db, grace=0):
            started.pass_through()
            away.enter_context(write_lock_held(db))
            gate.set()
        assert len(db.keeper._kept) == 0
    assert [event.kind for event in db.history(task.id)] == ["submitted", "claimed"]


def test_all_that_is_left_to_tell_at_the_end_waits_together_and_not_one_after_the_other(db, app, monkeypatch):
    """However many handlers do not listen: whoever asked the worker to end gives it so much time, and no more."""
    monkeypatch.setattr("relet.worker.worker.STOP_WAIT_S", 0.05)
    monkeypatch.setattr("relet.worker.worker.LAST_WORD_S", 0.05)
    started, gate, patience, call = threading.Semaphore(0), Gate(), [], db.backend.call

    @app.task("work")
    def work(run):
        started.release()
        gate.pass_through()

    def noting(ask, *, patience_ms=None):
        patience.append(patience_ms)
        return call(ask, patience_ms=patience_ms)

    db.submit_many("work", [None] * 4)
    with contextlib.ExitStack() as away, app.worker(db, concurrency=4, grace=0):
        for _ in range(4):
            assert started.acquire(timeout=15)
        away.enter_context(write_lock_held(db))
        monkeypatch.setattr(db.backend, "call", noting)
    gate.set()
    assert len(patience) == 4
    assert sum(patience) <= 150, "milliseconds"


def test_a_lease_whose_heartbeat_has_no_answer_is_doubtful_and_held_again_once_it_has(db, app, impatient):
    started, gate, seen = Gate(), Gate(), []

    @app.task("work", ttl="3s")
    def work(run):
        run.lease.belief.trust.interval_ms = 50  # beat often, so that one falls into the outage
        db.keeper.poke()
        started.set()
        eventually(lambda: run.lease.status is Status.DOUBTFUL)
        seen.append(run.lease.status)
        gate.set()
        eventually(lambda: run.lease.status is Status.HELD)
        seen.append(run.lease.status)
        run.save("goes on")
        return "done"

    task = work.submit(db)
    with app.worker(db):
        started.pass_through()
        with write_lock_held(db):
            gate.pass_through()
        assert db.result(task.id, wait=15) == "done"
    assert seen == ["doubtful", "held"]
    assert db.task(task.id).losses == 0


def test_a_check_in_doubt_asks_the_store_before_the_next_step(relet_db, app):
    seen = []

    @app.task("work")
    def work(run):
        run.lease.belief.trust.miss(relet_db.clock.fast_ms() + 1_000_000)
        seen.append(run.lease.status)
        run.check()
        seen.append(run.lease.status)

    work.submit(relet_db)
    app.run_until_idle(relet_db)
    assert seen == ["doubtful", "held"]


def test_a_worker_that_starts_while_the_store_is_away_works_once_it_is_back(db, app, impatient):
    app.task("work")(lambda run: "done")
    task = db.submit("work")
    with write_lock_held(db):
        worker = app.worker(db).start()
        eventually(lambda: worker._lookout._claim_at > 0)  # it has tried
    assert db.result(task.id, wait=10) == "done"
    worker.close()
    assert worker.fault is None


def test_a_sweep_that_fails_loses_no_grant_of_the_same_turn(db, app, monkeypatch):
    call = db.backend.call

    def unavailable(ask, **how):
        if isinstance(ask, Sweep):
            raise relet.Unavailable("away for this one")
        return call(ask, **how)

    monkeypatch.setattr(db.backend, "call", unavailable)
    app.task("work")(lambda run: "done")
    task = db.submit("work")
    assert app.run_until_idle(db) == 1
    assert db.result(task.id) == "done"
    assert len([event for event in db.history(task.id) if event.kind == "claimed"]) == 1


class ContendedCursor(apsw.Cursor):
    """Answers BUSY to some statements of writers, as SQLite does when another connection is in the way."""

    refuse = ()

    def execute(self, statements, *args, **named):
        if statements.startswith("BEGIN"):
            self.connection.writes = statements.startswith("BEGIN IMMEDIATE")
        if self.connection.writes and self.refuse and statements.startswith(self.refuse[0]):
            self.refuse.pop(0)
            raise apsw.BusyError("BusyError: database is locked")
        return super().execute(statements, *args, **named)


class Contended(apsw.Connection):
    writes = False

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.cursor_factory = ContendedCursor


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "COMMIT"])
def test_rd_13_contention_costs_no_attempt_and_gives_one_result(db, app, monkeypatch, statement):
    monkeypatch.setattr("relet.worker.lookout.BACK_OFF_S", 0.01)
    monkeypatch.setattr(apsw, "Connection", Contended)
    started, gate = Gate(), Gate()

    @app.task("work")
    def work(run):
        started.set()
        gate.pass_through()
        return "once"

    with relet.connect(f"sqlite:///{db.place}") as busy:
        task = work.submit(busy)
        worker = app.worker(busy)
        worker._sweep_at = float("inf")  # the refusals are for the completion
        with worker:
            started.pass_through()
            times = [statement] * 3
            monkeypatch.setattr(ContendedCursor, "refuse", times)
            gate.set()
            assert busy.result(task.id, wait=10) == "once"
    assert times == []
    found = db.task(task.id)
    assert (found.attempt, found.failures, found.losses) == (1, 0, 0)
    assert [event.kind for event in db.history(task.id)] == ["submitted", "claimed", "completed"]


def test_an_unknown_outcome_is_asked_again_and_gives_one_result(db, app, monkeypatch):
    """The commit went through and its answer was lost, twice in a row: the second is told by the worker itself."""
    lost = []
    commit = lane.commit

    def answerless(connection):
        commit(connection)
        if armed and threading.current_thread().name == "relet-worker" and len(lost) < 2:
            lost.append(1)
            raise relet.OutcomeUnknown("the answer was lost")

    armed = []
    monkeypatch.setattr(lane, "commit", answerless)

    @app.task("work")
    def work(run):
        armed.append(1)
        return "once"

    task = work.submit(db)
    with app.worker(db):
        assert db.result(task.id, wait=10) == "once"
    assert len(lost) == 2
    assert [event.kind for event in db.history(task.id)] == ["submitted", "claimed", "completed"]


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "with a result to hand in"])
def test_a_store_that_was_moved_away_is_said_once_and_not_at_each_try(db, app, caplog, monkeypatch, busy):
    monkeypatch.setattr(worker_module, "SWEEP_EVERY_S", 0.01)
    monkeypatch.setattr(lookout, "BACK_OFF_S", 0.01)
    monkeypatch.setattr(trouble, "AGAIN_S", 600)
    caplog.set_level("INFO", "relet.worker")
    started, gate, turns = Gate(), Gate(), Counter()
    turn_over = Worker._turn_over
    monkeypatch.setattr(Worker, "_turn_over", lambda *given: turns.update(["turn"]) or turn_over(*given))

    @app.task("work")
    def work(run):
        started.set()
        gate.pass_through()

    if busy:
        work.submit(db)
    with app.worker(db):
        if busy:
            started.pass_through()
        os.rename(db.place, f"{db.place}.away")
        gate.set()
        eventually(lambda: "no file in the place" in caplog.text)
        so_far = turns["turn"]
        eventually(lambda: turns["turn"] >= so_far + 5)
        said = Counter(
            record.getMessage() for record in caplog.records if "no file in the place" in record.getMessage()
        )
        assert max(said.values()) == 1
        os.rename(f"{db.place}.away", db.place)
        eventually(lambda: "the store answers again" in caplog.text)


def test_a_task_whose_input_is_damaged_fails_and_is_not_begun_for_ever(db, app):
    @app.task("work", retry=relet.RetryPolicy(max_attempts=1))
    def work(run, n):
        return n

    damaged, whole = work.submit(db, 1), work.submit(db, 2)
    with contextlib.closing(apsw.Connection(db.place)) as file:
        for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            file.execute(f'DROP TRIGGER "{name}"')
        (seq,) = file.execute("SELECT seq FROM tasks WHERE id = ?", (damaged.id,)).fetchone()
        file.execute("UPDATE inputs SET input = '{' WHERE task_seq = ?", (seq,))
        with app.worker(db):
            eventually(lambda: db.task(whole.id).state == "done")
            eventually(lambda: db.stats().total.failed == 1)
        ((failures, error),) = file.execute("SELECT failures, error FROM tasks WHERE seq = ?", (seq,)).fetchall()
    assert failures == 1 and "it is damaged" in error
