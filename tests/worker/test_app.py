"""An App: handlers by kind, what they may be told, and which tasks they get."""

import threading

import pytest

import relet


def test_a_def_handler_gets_a_run_and_its_result_is_kept(db, app):
    @app.task("double")
    def double(run: relet.Run, n: int) -> int:
        assert isinstance(run, relet.Run)
        return 2 * n

    task = double.submit(db, n=4)
    assert app.run_until_idle(db) == 1
    assert db.result(task.id) == 8


def test_an_async_def_handler_gets_an_async_run_and_its_result_is_kept(db, app):
    @app.task("double")
    async def double(run: relet.AsyncRun, n: int) -> int:
        assert isinstance(run, relet.AsyncRun)
        await run.save(n)
        return 2 * await run.load()

    task = double.submit(db, n=4)
    assert app.run_until_idle(db) == 1
    assert db.result(task.id) == 8


def test_a_handler_that_takes_no_run_gets_the_input_alone(db, app):
    @app.task("add")
    def add(a: int, b: int) -> int:
        return a + b

    task = add.submit(db, 2, 3)
    app.run_until_idle(db)
    assert db.result(task.id) == 5


def test_a_run_knows_its_task(db, app):
    seen = []

    @app.task("look", queue="desk")
    def look(run: relet.Run, n: int) -> None:
        seen.append((run.task, run.task_id, run.token, run.attempt, run.holder, run.draining, run.stopped))

    look.submit(db, n=1, id="t", labels={"team": "a"})
    app.run_until_idle(db)
    ((task, task_id, token, attempt, holder, draining, stopped),) = seen
    assert (task.id, task.queue, task.kind, task.input) == ("t", "desk", "look", {"n": 1})
    assert (task.labels, task.attempt, task_id, attempt, draining, stopped) == ({"team": "a"}, 1, "t", 1, False, None)
    claimed = db.history("t")[1]
    assert (token, holder) == (claimed.token, claimed.holder)


def test_the_function_itself_stays_callable(app):
    @app.task("double")
    def double(run, n):
        """Twice as much."""
        return 2 * n

    assert double(None, 21) == double(None, n=21) == 42
    assert (double.__name__, double.__doc__) == ("double", "Twice as much.")


def test_kind_and_queue_default_to_the_name_of_the_function(app):
    @app.task
    def report(run):
        """Named by itself."""

    @app.task("digest")
    def other(run):
        """Named by the caller."""

    @app.task("letter", queue="mail")
    def third(run):
        """In a queue of another name."""

    assert (report.kind, report.queue) == ("report", "report")
    assert (other.kind, other.queue) == ("digest", "digest")
    assert (third.kind, third.queue) == ("letter", "mail")
    assert list(app.handlers) == ["report", "digest", "letter"]


def test_a_submitted_task_has_the_kind_and_the_queue_of_its_handler(db, app):
    @app.task("letter", queue="mail")
    def letter(run):
        """In a queue of another name."""

    task = letter.submit(db)
    assert (task.kind, task.queue) == ("letter", "mail")


def test_a_second_handler_of_one_kind_is_refused_and_the_first_stays(db, app):
    @app.task("report")
    def first(run):
        return 1

    with pytest.raises(relet.Invalid, match="'report' has a handler already"):
        app.task("report")(lambda run: 2)
    task = first.submit(db)
    app.run_until_idle(db)
    assert db.result(task.id) == 1


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"heartbeat": "fork"}, "heartbeat"), ({"isolation": True}, "isolation"), ({"max_silence": 0}, "max_silence"),
        ({"ttl": "1ms"}, "ttl"), ({"timeout": "soon"}, "timeout"), ({"max_hold": -1}, "max_hold"),
        ({"retry": 3}, "retry"), ({"queue": "a\nb"}, "queue"),
        ({"retry": relet.RetryPolicy(max_attempts=0)}, "max_attempts"),
        ({"retry": relet.RetryPolicy(base="x")}, "base"),
    ],
)  # fmt: skip
def test_a_knob_that_means_nothing_is_refused_where_it_is_written(app, given, named):
    with pytest.raises(relet.Invalid, match=f"^{named}: "):
        app.task("report", **given)(lambda run: None)


def test_knobs_of_submit_come_before_those_of_the_handler_and_the_queue(db, app):
    ttls = {}

    @app.task("set", queue="desk", ttl="40s")
    def with_ttl(run, name: str):
        ttls[name] = run.lease.ttl

    @app.task("unset", queue="desk")
    def without_ttl(run, name: str):
        ttls[name] = run.lease.ttl

    with_ttl.submit(db, "task", ttl="30s")
    with_ttl.submit(db, "handler")
    without_ttl.submit(db, "default")
    app.run_until_idle(db)
    db.queue("desk", ttl="50s")
    without_ttl.submit(db, "queue")
    with_ttl.submit(db, "handler before queue")
    app.run_until_idle(db)
    assert ttls == {"task": 30, "handler": 40, "default": 60, "queue": 50, "handler before queue": 40}


def test_two_handlers_of_one_queue_each_get_their_kind(db, app):
    @app.task("up", queue="words")
    def up(run, word: str):
        return word.upper()

    @app.task("down", queue="words")
    async def down(run, word: str):
        return word.lower()

    tasks = [handler.submit(db, word) for word in ("Ab", "Cd") for handler in (up, down)]
    assert app.run_until_idle(db, concurrency=2) == 4
    assert [db.result(task.id) for task in tasks] == ["AB", "ab", "CD", "cd"]


def test_a_worker_claims_only_the_kinds_it_has(db, app):
    @app.task("known", queue="desk")
    def known(run):
        return "done"

    strange = db.submit("desk", kind="unknown", priority=9)
    task = known.submit(db)
    assert app.run_until_idle(db) == 1
    assert db.result(task.id) == "done"
    assert (db.task(strange.id).state, db.task(strange.id).token) == ("ready", None)


def test_a_worker_of_some_queues_leaves_the_others_alone(db, app):
    for name in ("a", "b"):
        app.task(name)(lambda run: None)
        db.submit(name, id=name)
    assert app.run_until_idle(db, queues="a") == 1
    assert (db.task("a").state, db.task("b").state) == ("done", "ready")
    assert app.run_until_idle(db, queues=["b"]) == 1
    assert db.task("b").state == "done"


def test_a_queue_without_a_handler_is_refused_with_those_that_there_are(db, app):
    app.task("mail")(lambda run: None)
    with pytest.raises(relet.Invalid, match="queues: no handler works on 'post'; there are mail"):
        app.worker(db, "post")


def test_an_app_without_handlers_has_nothing_to_work_on(db, app):
    with pytest.raises(relet.Invalid, match="app: has no handlers"):
        app.worker(db)


@pytest.mark.parametrize("concurrency", [0, -1, True, 1.5, 10_000])
def test_a_concurrency_that_cannot_be_is_refused(db, app, concurrency):
    app.task("mail")(lambda run: None)
    with pytest.raises(relet.Invalid, match=r"^concurrency: "):
        app.worker(db, concurrency=concurrency)


def test_making_apps_handlers_and_workers_starts_nothing(db, app):
    before = threading.active_count()
    app.task("mail")(lambda run: None)
    app.worker(db, concurrency=8)
    assert threading.active_count() == before
