"""`@app.task(concurrency=)`: how many of one kind a worker runs at once, beside others."""

import threading
from collections import Counter

import pytest

import relet
from relet.worker.portions import Portion, Portions
from tests.waiting import Gate


class Kind:
    """What a worker knows of a handler here."""

    def __init__(self, concurrency=None):
        self.concurrency = concurrency


def test_kinds_without_a_limit_are_asked_for_together():
    portions = Portions({"a": Kind(), "b": Kind()})
    assert [portions.next([], 4) for _ in range(2)] == [Portion(["a", "b"], 4)] * 2


def test_a_kind_with_a_limit_is_asked_for_by_itself_in_its_turn_and_for_no_more_than_may_start():
    portions = Portions({"a": Kind(), "b": Kind(2), "c": Kind(5)})
    asked = [portions.next(["b", "a", "a"], 4) for _ in range(4)]
    assert asked == [Portion(["a"], 4), Portion(["b"], 1), Portion(["c"], 4), Portion(["a"], 4)]


def test_one_at_its_limit_is_left_out():
    portions = Portions({"b": Kind(2), "c": Kind(1)})
    assert portions.next(["b", "b"], 4) == Portion(["c"], 1)
    assert portions.next(["b", "b", "c"], 4) is None


def test_there_is_room_while_any_kind_may_run_once_more():
    both_limited = Portions({"b": Kind(2), "c": Kind(1)})
    assert [both_limited.has_room(running) for running in (["b", "b"], ["b", "b", "c"])] == [True, False]
    assert Portions({"a": Kind(), "c": Kind(1)}).has_room(["c"] * 3)
    assert Portions({"a": Kind()}).has_room(["a"] * 99)


def test_nothing_is_found_only_once_every_kind_was_asked_for():
    portions = Portions({"a": Kind(), "b": Kind(2)})
    assert [portions.granted(some) for some in (False, True, False, False, False)] == [
        False,
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("style", ["def", "async def"])
def test_a_kind_runs_no_more_often_at_once_than_it_may_while_others_fill_the_worker(db, app, style):
    lock, inside, most = threading.Lock(), Counter(), Counter()
    full = Gate()

    def work(kind):
        with lock:
            inside[kind] += 1
            most[kind] = max(most[kind], inside[kind])
            if inside == {"narrow": 2, "wide": 4}:
                full.set()
        full.pass_through()
        with lock:
            inside[kind] -= 1

    if style == "def":

        @app.task("narrow", queue="work", concurrency=2)
        def narrow(run):
            work("narrow")
    else:

        @app.task("narrow", queue="work", concurrency=2)
        async def narrow(run):
            import asyncio

            await asyncio.to_thread(work, "narrow")

    @app.task("wide", queue="work")
    def wide(run):
        work("wide")

    db.submit_many("work", [None] * 9, kind="narrow")
    db.submit_many("work", [None] * 4, kind="wide")
    assert app.run_until_idle(db, concurrency=6) == 13
    assert most["narrow"] == 2


@pytest.mark.parametrize("value", [0, -1, True, "2", 100_001])
def test_a_limit_that_is_none_is_refused(app, value):
    with pytest.raises(relet.Invalid, match="concurrency: "):
        app.task("report", concurrency=value)
    assert app.handlers == {}
