"""What a handler raises: for good, later, or by the policy; inside exception groups as well."""

import asyncio

import pytest

import relet
from relet.core import limits
from tests.waiting import eventually

ONCE = relet.RetryPolicy(max_attempts=1)
AT_ONCE = relet.RetryPolicy(base=0)


class Unreadable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def attempt(db, app, raised, **options):
    """The task after one attempt that ended like this."""

    def handler(run):
        raise raised

    app.task("try", **options)(handler)
    task = db.submit("try")
    app.run_until_idle(db)
    return db.task(task.id)


def test_permanent_fails_for_good_at_once(relet_db, app):
    task = attempt(relet_db, app, relet.Permanent("no such customer", code="NO-CUSTOMER"))
    assert (task.state, task.reason, task.failures) == ("failed", "permanent", 1)
    assert (task.error, task.code) == ("no such customer", "NO-CUSTOMER")


def test_temporary_is_tried_again_after_the_delay_and_never_before(relet_db, app):
    task = attempt(relet_db, app, relet.Temporary("busy", delay="5m", code="BUSY"))
    assert (task.state, task.error, task.code, task.attempt) == ("ready", "busy", "BUSY", 2)
    relet_db.clock.advance("299.9s")
    assert app.run_until_idle(relet_db) == 0
    relet_db.clock.advance("61s")  # the delay, and at most a fifth of it as jitter
    assert app.run_until_idle(relet_db) == 1


def test_a_transaction_of_its_own_that_takes_too_long_is_a_failure_and_no_absence_of_the_store(
    db, app, monkeypatch, caplog
):
    monkeypatch.setattr(limits, "TRANSACTION_S_MAX", 0.02)

    @app.task("dawdle", retry=relet.RetryPolicy(max_attempts=2, base=0))
    def dawdle(run):
        with run.transaction() as connection:
            eventually(lambda: not connection.in_transaction)

    task = dawdle.submit(db)
    app.run_until_idle(db)
    found = db.task(task.id)
    assert (found.state, found.failures, found.losses) == ("failed", 2, 0)
    assert found.error.startswith("Refused: your transaction took longer than 0.02 s")
    assert "store was away" not in caplog.text


def test_temporary_without_a_delay_waits_as_the_policy_says(relet_db, app):
    policy = relet.RetryPolicy(base="10s", cap="10s")
    task = attempt(relet_db, app, relet.Temporary("busy"), retry=policy)
    assert (task.state, task.failures) == ("ready", 1)
    relet_db.clock.advance("9.9s")
    assert app.run_until_idle(relet_db) == 0
    relet_db.clock.advance("2.1s")
    assert app.run_until_idle(relet_db) == 1


def test_any_other_exception_is_tried_again_with_growing_capped_waits(relet_db, app):
    app.task("try", retry=relet.RetryPolicy(max_attempts=5, base="10s", cap="30s"))(lambda run: 1 / 0)
    task = relet_db.submit("try")
    for _ in range(5):
        assert app.run_until_idle(relet_db) == 1
        relet_db.clock.advance("37s")
    waits = [event.detail["delay_ms"] for event in relet_db.history(task.id) if event.kind == "retried"]
    assert len(waits) == 4
    for wait, least in zip(waits, [10_000, 20_000, 30_000, 30_000], strict=True):
        assert least <= wait <= 1.2 * least
    dead = relet_db.task(task.id)
    assert (dead.state, dead.reason, dead.failures, dead.losses) == ("failed", "attempts", 5, 0)
    assert dead.error == "ZeroDivisionError: division by zero"


def test_max_attempts_of_the_submit_come_before_the_policy(relet_db, app):
    app.task("try", retry=relet.RetryPolicy(max_attempts=5, base=0))(lambda run: 1 / 0)
    task = relet_db.submit("try", max_attempts=2)
    assert app.run_until_idle(relet_db) == 2
    assert relet_db.task(task.id).reason == "attempts"


def failed_beside_a_good_one(db, app, style, raised):
    """The task whose handler raised `raised`, once the worker has gone on and done the next."""

    def blocking(run, good: bool):
        if not good:
            raise raised

    async def awaiting(run, good: bool):
        blocking(run, good)

    app.task("try", retry=ONCE)(blocking if style == "def" else awaiting)
    bad, good = db.submit("try", False, priority=1), db.submit("try", True)
    assert app.run_until_idle(db) == 2
    assert db.task(good.id).state == "done"
    return db.task(bad.id)


@pytest.mark.parametrize("depth", [1, 3])
def test_permanent_is_found_inside_exception_groups(relet_db, app, depth):
    raised = relet.Permanent("never", code="NEVER")
    for _ in range(depth):
        raised = ExceptionGroup("several", [ValueError("other"), raised])
    task = attempt(relet_db, app, raised)
    assert (task.state, task.code, task.error) == ("failed", "NEVER", "never")


def test_temporary_is_found_inside_exception_groups(relet_db, app):
    group = ExceptionGroup("several", [ValueError("other"), relet.Temporary("busy", delay="1h", code="BUSY")])
    task = attempt(relet_db, app, group)
    assert (task.state, task.code) == ("ready", "BUSY")
    relet_db.clock.advance("59m")
    assert app.run_until_idle(relet_db) == 0


def test_permanent_outweighs_temporary_in_one_group(relet_db, app):
    group = ExceptionGroup("several", [relet.Temporary("busy"), relet.Permanent("never", code="NEVER")])
    task = attempt(relet_db, app, group)
    assert (task.state, task.code) == ("failed", "NEVER")


def test_permanent_in_a_task_group_of_an_async_handler_is_found(db, app):
    async def broken():
        raise relet.Permanent("never", code="NEVER")

    @app.task("try")
    async def handler(run):
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(30))
            group.create_task(broken())

    task = handler.submit(db)
    app.run_until_idle(db)
    assert (db.task(task.id).state, db.task(task.id).code) == ("failed", "NEVER")


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (ValueError("wrong"), "ValueError: wrong"), (ValueError(), "ValueError"), (KeyError("k"), "KeyError: 'k'"),
        (ValueError("a\x00b \ud800"), "ValueError: a\ufffdb \ufffd"), (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"), (GeneratorExit(), "GeneratorExit"),
        (asyncio.CancelledError(), "CancelledError"), (relet.NotFound("no such task"), "NotFound: no such task"),
        (Unreadable(), "Unreadable (its text cannot be read: RuntimeError)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("style", ["def", "async def"])
def test_whatever_is_raised_is_a_failure_with_its_words(db, app, style, raised, error):
    task = failed_beside_a_good_one(db, app, style, raised)
    assert (task.state, task.reason, task.error) == ("failed", "attempts", error)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_worker_outlives_a_task_within_a_handler_that_ends_the_event_loop(db, app, kind):
    async def broken():
        raise kind

    @app.task("try", retry=ONCE)
    async def handler(run, good: bool):
        if not good:
            await asyncio.create_task(broken())

    bad, good = db.submit("try", False, priority=1), db.submit("try", True)
    assert app.run_until_idle(db) == 2
    assert (db.task(bad.id).state, db.task(bad.id).error) == ("failed", kind.__name__)
    assert db.task(good.id).state == "done"


@pytest.mark.parametrize("style", ["def", "async def"])
@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_worker_outlives_an_exception_whose_own_text_ends_the_program(db, app, style, kind):
    class Wild(Exception):
        def __str__(self):
            raise kind

        __repr__ = __str__

    task = failed_beside_a_good_one(db, app, style, Wild)
    assert (task.state, task.error) == ("failed", f"Wild (its text cannot be read: {kind.__name__})")


@pytest.mark.parametrize(
    "raised",
    [relet.Temporary("busy", delay="soon"), relet.Temporary("busy", delay=-1), relet.Temporary("busy", code="a\nb")],
)
def test_pl_05_a_failure_that_cannot_be_told_as_asked_is_told_all_the_same(relet_db, app, raised):
    task = attempt(relet_db, app, raised)
    assert (task.state, task.failures, task.losses) == ("ready", 1, 0)
    assert task.error.startswith("busy (and ")


def test_pl_05_for_good_stays_for_good_when_its_code_cannot_be_kept(relet_db, app):
    task = attempt(relet_db, app, relet.Permanent("never", code="x" * 500))
    assert (task.state, task.reason, task.code) == ("failed", "permanent", None)
    assert task.error.startswith("never (and code: ")


def test_a_handler_that_fails_and_then_works_is_done_with_its_attempts_counted(db, app):
    @app.task("try", retry=AT_ONCE)
    def handler(run):
        if run.attempt < 3:
            raise ValueError(run.attempt)
        return run.attempt

    task = handler.submit(db)
    assert app.run_until_idle(db) == 3
    done = db.task(task.id)
    assert (done.result, done.failures, done.attempt, done.error) == (3, 2, 3, None)


def test_a_checkpoint_outlives_the_attempt_that_failed(db, app):
    @app.task("try", retry=AT_ONCE)
    def handler(run):
        so_far = (run.load() or []) + [run.attempt]
        run.save(so_far)
        if len(so_far) < 3:
            raise ValueError("not yet")
        return so_far

    task = handler.submit(db)
    app.run_until_idle(db)
    assert db.result(task.id) == [1, 2, 3]
