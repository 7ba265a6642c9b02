"""What tests of durable work start from: a store on a steered clock, an app, and handlers in both styles."""

import pytest

import relet
from relet.testing import store
from relet.testing.clock import Clock
from tests.durable.styles import STYLES

TURNS_MAX = 20


@pytest.fixture
def db():
    with store(clock=Clock(), holder="test") as client:
        yield client


@pytest.fixture
def app():
    return relet.App()


@pytest.fixture(params=list(STYLES))
def style(request):
    return request.param


@pytest.fixture
def handle(app, style):
    """Make a body (one text, awaiting its verbs) the handler of a kind, in the style of this run of the test."""

    def handle(body, kind="work", **knobs):
        return app.task(kind, **knobs)(STYLES[style](body))

    return handle


@pytest.fixture
def go(db, app):
    """Work until nothing is ready."""

    def go():
        return app.run_until_idle(db)

    return go


@pytest.fixture
def settle(db, app):
    """Work, let the backoff of what failed pass, and so on until the task is finished or waits; the task then."""

    def settle(task):
        for _ in range(TURNS_MAX):
            app.run_until_idle(db)
            if (found := db.task(task.id)).state not in ("ready", "leased"):
                return found
            db.clock.advance("10m")
        raise AssertionError(f"after {TURNS_MAX} turns task {task.id} is {found.state}: {found.error}")

    return settle


@pytest.fixture
def asked(db, go):
    """Work until the task waits; the open question."""

    def asked(task):
        go()
        (wait,) = [one for one in db.waits() if one.task_id == task.id]
        assert db.task(task.id).state == "waiting"
        return wait

    return asked
