"""Log lines: what is said of a lease names task, token, attempt, holder and reason, in the text and in the record."""

import io
import logging
import threading

import pytest

import relet
from relet.client.telling import ABOUT
from relet.core.errors import Unavailable
from relet.core.rules.renew import Renew
from relet.worker.logs import LogContext
from relet.worker.main import line_handler
from tests.waiting import Gate, eventually

HOLDER = "w-1"
FACTS = ("task", "token", "attempt", "holder", "reason")


@pytest.fixture
def lines(caplog):
    """What relet has logged so far, each line looked at: it names its lease in full, or is the worker's own."""
    caplog.set_level(logging.INFO, "relet")

    def call(task):
        records = [record for record in caplog.records if record.name.startswith("relet")]
        for record in records:
            text = record.getMessage()
            if not hasattr(record, "task"):
                assert text.startswith(f"worker {HOLDER} "), "it names the worker, and is about no task"
                continue
            facts = tuple(getattr(record, name) for name in FACTS)
            assert text.endswith(ABOUT % facts)
            assert not {None, ""} & set(facts)
        own = [record for record in records if getattr(record, "task", None) == task.id]
        return [(record.getMessage().split(" (task=")[0].split(":")[0], record.reason) for record in own]

    return call


def work(db, app, **options):
    """Until there is nothing left to do."""
    with app.worker(db, holder=HOLDER, **options) as worker:
        worker.wait_until_idle()


def test_a_takeover_names_who_had_it_and_why(relet_db, app, lines):
    task = app.task("work")(lambda run: 1).submit(relet_db)
    dead = relet_db.claim("work", holder="dead")
    relet_db.clock.advance("61s")
    work(relet_db, app)
    assert lines(task) == [
        (f"attempt 2 begins, taken over from dead, token {dead.token}", "expired"), ("done", "completed"),
    ]  # fmt: skip


def test_a_failure_a_retry_and_a_failure_for_good_name_their_codes(relet_db, app, lines):
    @app.task("work")
    def handler(run):
        if run.attempt == 1:
            raise ValueError("not today")
        raise relet.Permanent("never", code="NEVER")

    task = handler.submit(relet_db)
    work(relet_db, app)
    relet_db.clock.advance("5s")
    work(relet_db, app)
    assert lines(task) == [
        ("attempt 1 begins", "claimed"), ("raised ValueError", "ValueError"), ("failed", "failed"),
        ("attempt 2 begins", "claimed"), ("raised Permanent", "NEVER"), ("failed", "NEVER"),
    ]  # fmt: skip


def test_a_wait_says_that_it_is_parked(relet_db, app, lines):
    task = app.task("work")(lambda run: run.approval("publish")).submit(relet_db)
    work(relet_db, app)
    assert lines(task) == [("attempt 1 begins", "claimed"), ("waits with 'publish'", "parked")]


def test_a_lease_that_its_handler_ended_says_how(relet_db, app, lines):
    task = app.task("work")(lambda run: run.lease.release()).submit(relet_db)
    with app.worker(relet_db, holder=HOLDER) as worker:
        eventually(lambda: worker.attempts)
        worker.drain()
    assert lines(task)[1] == ("ended by its handler", "released")


def test_what_a_lost_lease_leaves_is_dropped_with_the_reason(relet_db, app, lines, monkeypatch):
    """Even when the keeper has not looked yet: the hand-in obeys the same deadline, and the keeper then lets go."""
    let_go, tend = threading.Event(), relet_db.keeper.tend
    monkeypatch.setattr(relet_db.keeper, "tend", lambda kept: let_go.wait(20) and tend(kept))

    @app.task("work")
    def handler(run):
        relet_db.clock.advance("58s")
        assert run.lease.status == "lost"
        return 1

    task = handler.submit(relet_db)
    with app.worker(relet_db, holder=HOLDER) as worker:
        eventually(lambda: worker.attempts)
        worker.drain()
        let_go.set()
        eventually(lambda: relet_db.task(task.id).state == "ready")
    assert lines(task)[1] == ("lost, so that what it leaves is dropped", "expired")
    assert "completed" not in dict(lines(task)).values()


def test_a_lease_that_is_lost_by_the_clock_of_its_holder_says_expired(relet_db, app, lines):
    @app.task("work")
    def handler(run):
        relet_db.clock.advance("58s")
        eventually(lambda: run.lease.status == "lost")
        run.check()

    task = handler.submit(relet_db)
    with app.worker(relet_db, holder=HOLDER) as worker:
        eventually(lambda: worker.attempts)
        worker.drain()
    said = lines(task)
    assert ("stopped", "expired") in said
    assert {reason for _, reason in said[1:]} <= {"expired", "released", "claimed"}


def test_a_heartbeat_that_hears_of_a_cancel_says_cancelled(relet_db, app, lines):
    @app.task("work")
    def handler(run):
        relet_db.cancel(run.task_id, "enough")
        relet_db.clock.advance("21s")
        eventually(lambda: run.lease.status == "lost")
        run.check()

    task = handler.submit(relet_db)
    work(relet_db, app)
    assert lines(task) == [("attempt 1 begins", "claimed"), ("lease lost", "cancelled"), ("stopped", "cancelled")]


def test_a_heartbeat_without_an_answer_names_the_lease_that_ends_first(relet_db, app, lines, monkeypatch):
    call = relet_db.backend.call

    def deaf(ask, **options):
        if isinstance(ask, Renew):
            raise Unavailable("nobody answers")
        return call(ask, **options)

    @app.task("work")
    def handler(run):
        monkeypatch.setattr(relet_db.backend, "call", deaf)
        relet_db.clock.advance("21s")
        eventually(lambda: run.lease.status == "doubtful")
        monkeypatch.undo()
        return 1

    task = handler.submit(relet_db)
    work(relet_db, app)
    said = lines(task)
    assert said[1] == (
        "1 heartbeat(s) had no answer, of this lease and those that end later", "RELET-UNAVAILABLE",
    )  # fmt: skip
    assert said[-1] == ("done", "completed")


def test_a_drain_says_of_each_lease_that_the_worker_ends(relet_db, app, lines):
    started = Gate()

    @app.task("work")
    def handler(run):
        started.set()
        eventually(lambda: run.stopped)
        run.check()

    task = handler.submit(relet_db)
    with app.worker(relet_db, holder=HOLDER, grace=0) as worker:
        started.pass_through()
        worker.drain()
    assert lines(task) == [("attempt 1 begins", "claimed"), ("stopped", "released")]
    assert relet_db.task(task.id).state == "ready"


def test_an_effect_that_nobody_knows_of_says_unknown(relet_db, app, lines):
    def unanswered(payload, effect):
        raise TimeoutError("no answer")

    @app.task("work")
    def handler(run):
        run.effect("pay", {"cents": 5}, unanswered)

    task = handler.submit(relet_db)
    work(relet_db, app)
    assert ("effect 'pay'", "unknown") in lines(task)


def test_a_result_that_is_refused_says_why(relet_db, app, lines):
    @app.task("work")
    def handler(run):
        relet_db.cancel(run.task_id, "enough")
        return 1

    task = handler.submit(relet_db)
    work(relet_db, app)
    assert ("its result was refused", "cancelled") in lines(task)


def test_lines_of_relet_and_of_handlers_carry_the_facts_once(relet_db, app):
    """As `relet worker` prints them."""
    out = io.StringIO()
    handler = line_handler(out)
    logs = [logging.getLogger(name) for name in ("relet.worker", "mine")]
    levels = [log.level for log in logs]
    for log in logs:
        log.addHandler(handler)
        log.setLevel(logging.INFO)

    @app.task("work")
    def talking(run):
        logs[1].info("half way")

    task = talking.submit(relet_db)
    try:
        logs[1].info("outside")
        work(relet_db, app)
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.removeHandler(handler)
            log.setLevel(level)
    printed = out.getvalue().splitlines()
    token = relet_db.history(task.id)[1].token
    facts = f"(task={task.id} token={token} attempt=1 holder={HOLDER} reason="
    assert [line.count("(task=") for line in printed] == [0, 0, 1, 1, 1, 0]
    assert printed[0].endswith("INFO mine outside")
    assert printed[3].endswith(f"INFO mine half way {facts}-)")
    assert printed[4].endswith(f"INFO relet.worker done {facts}completed)")


def test_a_record_outside_of_a_run_has_every_attribute():
    record = logging.makeLogRecord({"msg": "x"})
    LogContext().filter(record)
    assert [getattr(record, name) for name in FACTS] == ["-"] * 5
