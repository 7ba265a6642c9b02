"""What may be a handler beside a function: whatever is called, as long as it can be told how."""

import functools

import pytest

import relet


def scale(run: relet.Run, n: int, by: int) -> int:
    return n * by


async def scale_later(run: relet.AsyncRun, n: int, by: int) -> int:
    return n * by


class Scale:
    def __init__(self, by):
        self.by = by

    def __call__(self, run: relet.Run, n: int) -> int:
        return n * self.by

    def within(self, run: relet.Run, n: int) -> int:
        return n * self.by


class ScaleLater(Scale):
    async def __call__(self, run: relet.AsyncRun, n: int) -> int:
        return n * self.by


CALLED = {
    "a partial": functools.partial(scale, by=2),
    "a partial of a partial": functools.partial(functools.partial(scale, by=3), by=2),
    "a partial that is awaited": functools.partial(scale_later, by=2),
    "an object": Scale(2),
    "an object that is awaited": ScaleLater(2),
    "a partial of an object": functools.partial(ScaleLater(2)),
    "a method": Scale(2).within,
    "a cache": functools.lru_cache(Scale(2).within),
}
NAMELESS = [name for name in CALLED if name not in ("a method", "a cache")]


@pytest.mark.parametrize("name", CALLED)
def test_whatever_is_called_does_a_kind_of_task_with_its_input_converted(db, app, name):
    handler = app.task("work")(CALLED[name])
    tasks = [handler.submit(db, 4), handler.submit(db, n=4), db.submit("work", 4, kind="work")]
    app.run_until_idle(db)
    assert [db.result(task.id) for task in tasks] == [8, 8, 8]
    wrong = db.submit("work", {"n": "four"}, kind="work")
    app.run_until_idle(db)
    assert db.task(wrong.id).state == "failed"
    assert "n does not fit int" in db.task(wrong.id).error


@pytest.mark.parametrize("name", NAMELESS)
def test_what_has_no_name_is_asked_for_its_kind(app, name):
    for add in (app.task, app.task(queue="work")):
        with pytest.raises(relet.Invalid, match="has no name of its own; give its kind"):
            add(CALLED[name])
    assert app.handlers == {}


def test_what_cannot_be_called_or_does_not_tell_its_parameters_is_refused(app):
    with pytest.raises(relet.Invalid, match="5 is not a function"):
        app.task("work")(5)
    with pytest.raises(relet.Invalid, match=r"no signature found.*wrap it in a function of your own"):
        app.task("work")(max)
    assert app.handlers == {}


@pytest.mark.parametrize("name", NAMELESS)
def test_what_another_process_cannot_find_is_refused_at_the_start(db, app, name):
    app.task("work", isolation="process")(CALLED[name])
    with pytest.raises(relet.Invalid, match="is not at the top of a module"):
        app.run_until_idle(db)
