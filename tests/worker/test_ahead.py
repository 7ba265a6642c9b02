"""Tasks are claimed while results are handed in, where a store answers both at once; whatever becomes of either."""

import asyncio
import threading

import pytest

import relet
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.core.rules.glance import Glance
from relet.store.sqlite.backend import SqliteBackend
from relet.worker import ahead
from relet.worker import worker as worker_module
from tests.waiting import Gate, eventually

SLOTS = 4


class Order:
    """Every call of a backend, as it begins; and what happens to some of them."""

    def __init__(self, db, monkeypatch):
        self.asked, self.before, self.after = [], {}, {}
        self._call = db.backend.call
        monkeypatch.setattr(db.backend, "call", self._through)

    def _through(self, ask, **how):
        self.asked.append(ask)
        self.before.get(type(ask), lambda _ask: None)(ask)
        answer = self._call(ask, **how)
        self.after.get(type(ask), lambda _ask, _answer: None)(ask, answer)
        return answer

    def is_beside(self):
        """Is it not the first claim, which goes alone."""
        return len(self.of(Claim)) > 1

    def of(self, kind):
        return [ask for ask in self.asked if isinstance(ask, kind)]


@pytest.fixture
def order(db, monkeypatch):
    """A store that is said to answer side by side, and a worker that hands in two results at a time."""
    monkeypatch.setattr(SqliteBackend, "answers_side_by_side", True)
    monkeypatch.setattr(ahead, "RESULTS_MIN", 2)
    monkeypatch.setattr(worker_module, "SWEEP_EVERY_S", 600)
    return Order(db, monkeypatch)


@pytest.fixture
def work(app):
    """A task that ends together with three others, in one turn of the loop, and so is handed in with them."""
    barriers = {}

    @app.task("work")
    async def work(run, n):
        await barriers.setdefault(asyncio.get_running_loop(), asyncio.Barrier(SLOTS)).wait()
        return n

    return work


def all_done(db, tasks):
    """Each by one attempt, and nothing lost on the way."""
    found = [db.task(task.id) for task in tasks]
    return all(task.state == "done" and task.losses == 0 and task.attempt == 1 for task in found)


def test_the_next_tasks_are_claimed_while_results_are_on_their_way(db, app, order, work):
    claimed = Gate()
    order.before[Claim] = lambda ask: claimed.set() if order.is_beside() else None
    order.before[Complete] = lambda ask: claimed.pass_through()
    tasks = [work.submit(db, n) for n in range(3 * SLOTS)]
    assert app.run_until_idle(db, concurrency=SLOTS) == len(tasks)
    assert all_done(db, tasks)
    assert all(ask.next is None for ask in order.of(Complete))


def test_what_was_granted_is_worked_on_though_the_results_beside_it_could_not_be_told(db, app, order, work):
    away = [True]

    def once(ask):
        if away:
            away.clear()
            raise relet.Unavailable("away for this one")

    order.before[Complete] = once
    tasks = [work.submit(db, n) for n in range(3 * SLOTS)]
    assert app.run_until_idle(db, concurrency=SLOTS) == len(tasks)
    assert all_done(db, tasks)
    assert all(len([event for event in db.history(task.id) if event.kind == "claimed"]) == 1 for task in tasks)


def test_who_cannot_tell_results_gets_no_more_to_do(db, app, order, work):
    away = threading.Event()
    away.set()

    def unavailable(ask):
        if away.is_set():
            raise relet.Unavailable("away for results")

    order.before[Complete] = unavailable
    tasks = [work.submit(db, n) for n in range(10 * SLOTS)]
    with app.worker(db, concurrency=SLOTS):
        eventually(lambda: len(order.of(Complete)) >= 3)
        held = [db.task(task.id) for task in tasks if db.task(task.id).state == "leased"]
        assert len(held) == 2 * SLOTS, "those that ran, and those that were claimed beside their first results"
        assert len(order.of(Claim)) == 2
        away.clear()
        eventually(lambda: all_done(db, tasks))


def test_a_claim_beside_whose_answer_was_lost_is_repeated_and_not_made_anew(db, app, order, work):
    lost = []

    def lose(ask, answer):
        if order.is_beside() and not lost:
            lost.extend(grant.handle.token for grant in answer)
            raise relet.OutcomeUnknown("the answer was lost")

    order.after[Claim] = lose
    tasks = [work.submit(db, n) for n in range(3 * SLOTS)]
    assert app.run_until_idle(db, concurrency=SLOTS) == len(tasks)
    assert len(lost) == SLOTS
    assert all_done(db, tasks)
    assert {db.task(task.id).token for task in tasks} >= set(lost)


def test_who_claimed_before_results_made_room_claims_again_at_once(db, app, order, work):
    """It found less than it asked for, which says nothing of what is there now."""
    db.queue("work", concurrency=SLOTS)
    answered = Gate()

    def note(ask, answer):
        if order.is_beside():
            answered.set()

    order.after[Claim] = note
    order.before[Complete] = lambda ask: answered.pass_through()
    tasks = [work.submit(db, n) for n in range(2 * SLOTS)]
    assert app.run_until_idle(db, concurrency=SLOTS) == len(tasks)
    assert all_done(db, tasks)
    looks = [type(ask) for ask in order.asked if isinstance(ask, (Claim, Glance))]
    assert looks[:3] == [Claim] * 3, "alone, beside the results, and once they were in; without a look first"


def test_one_result_goes_together_with_the_claim(db, app, order):
    @app.task("work")
    async def work(run, n):
        return n

    tasks = [work.submit(db, n) for n in range(2)]
    assert app.run_until_idle(db, concurrency=1) == len(tasks)
    assert any(ask.next is not None for ask in order.of(Complete))


def test_without_a_thread_results_and_claim_go_together(db, app, order, work, monkeypatch):
    def none_left(*_given):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ahead.ThreadPoolExecutor, "submit", none_left)
    tasks = [work.submit(db, n) for n in range(3 * SLOTS)]
    assert app.run_until_idle(db, concurrency=SLOTS) == len(tasks)
    assert all_done(db, tasks)
    assert any(ask.next is not None for ask in order.of(Complete))
