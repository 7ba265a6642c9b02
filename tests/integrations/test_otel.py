"""Attempts of a worker as spans, by the API alone."""

import asyncio
import subprocess
import sys

import pytest
from opentelemetry.trace import StatusCode

import relet
from relet.integrations.otel import instrument
from relet.testing import store
from tests.spans import keep_spans, nothing_is_current


@pytest.fixture
def spans(monkeypatch):
    return keep_spans(monkeypatch)


@pytest.fixture
def app():
    made = relet.App()

    @made.task("plain", queue="q")
    def plain(run: relet.Run, n: int) -> int:
        if n < 0:
            raise relet.Permanent("no such number")
        if n == 0:
            run.approval("go")
        return n

    @made.task("awaited", queue="q")
    async def awaited(n: int) -> int:
        await asyncio.sleep(0)
        if n < 0:
            raise relet.Permanent("no such number")
        return n

    return made


@pytest.mark.parametrize("kind", ["plain", "awaited"])
def test_an_attempt_is_a_span_that_says_whose_work_it_is(app, spans, kind):
    instrument(app)
    with store() as db:
        task = app.handlers[kind].submit(db, 3)
        app.run_until_idle(db)
        assert db.result(task.id) == 3
        (span,) = spans
        assert (span.name, span.ended, span.status) == (f"task {kind}", True, None)
        (claimed,) = [event for event in db.history(task.id) if event.kind == "claimed"]
        assert span.attributes == {
            "relet.task_id": task.id, "relet.token": claimed.token, "relet.queue": "q", "relet.attempt": 1
        }  # fmt: skip
    assert nothing_is_current()


@pytest.mark.parametrize("kind", ["plain", "awaited"])
def test_what_a_handler_raises_is_the_error_of_its_span_and_fails_the_task_as_before(app, spans, kind):
    instrument(app)
    with store() as db:
        task = app.handlers[kind].submit(db, -1)
        app.run_until_idle(db)
        assert db.task(task.id).error == "no such number"
    assert (spans[0].status, str(spans[0].raised), spans[0].ended) == (StatusCode.ERROR, "no such number", True)


def test_a_task_that_waits_is_no_error_and_its_next_attempt_a_span_of_its_own(app, spans):
    instrument(app)
    with store() as db:
        task = app.handlers["plain"].submit(db, 0)
        app.run_until_idle(db)
        assert db.task(task.id).state == "waiting"
        assert (spans[0].status, spans[0].raised, spans[0].ended) == (None, None, True)
        db.decide(task.id, "go", "accept", by="ann")
        app.run_until_idle(db)
    assert [span.attributes["relet.task_id"] for span in spans] == [task.id, task.id]
    assert spans[0].attributes["relet.token"] < spans[1].attributes["relet.token"]


def test_a_handler_is_spanned_once_however_often_it_is_asked_for(app, spans):
    instrument(app)

    @app.task("later", queue="q")
    def later() -> None: ...

    instrument(app)
    with store() as db:
        for kind in ("plain", "later"):
            app.handlers[kind].submit(db, *([1] if kind == "plain" else []))
        app.run_until_idle(db)
    assert sorted(span.name for span in spans) == ["task later", "task plain"]


def test_a_handler_that_is_called_as_a_function_has_a_span_of_no_task(app, spans):
    instrument(app)
    assert asyncio.run(app.handlers["awaited"](4)) == 4
    assert spans[0].attributes == {}


def test_without_the_package_it_says_what_to_install(app, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(relet.Invalid, match=r"pip install 'relet\[otel\]'"):
        instrument(app)


def test_nothing_of_opentelemetry_is_loaded_by_the_import():
    asked = "import sys, relet.integrations.otel; print([name for name in sys.modules if 'opentelemetry' in name])"
    run = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"
