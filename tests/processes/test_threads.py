"""One client, many threads: no connection is used by two at once, and nobody's transaction is undone by another."""

import itertools
import threading

import pytest

import relet
from tests.processes.whole import is_whole, tokens_grow

THREADS = 8


def in_threads(work):
    """Run it in all threads at once; what was raised in them."""
    raised, barrier = [], threading.Barrier(THREADS, timeout=30)

    def run(n):
        try:
            barrier.wait()
            work(n)
        except BaseException as wrong:
            raised.append(wrong)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return raised


@pytest.mark.slow
def test_sq_09_eight_threads_and_the_keeper_share_one_client(db):
    per_thread = 25
    tasks = db.submit_many("work", list(range(THREADS * per_thread)))
    done = []

    def work(n):
        while (lease := db.claim("work", holder=f"thread-{n}", ttl=2)) is not None:
            with lease.keep():
                lease.save({"by": n})
                lease.renew()
                assert lease.load() == {"by": n}
                db.task(lease.task_id)
                lease.complete(n)
            done.append(lease.task_id)

    assert in_threads(work) == []
    assert sorted(done) == sorted(task.id for task in tasks)
    assert tokens_grow(db)
    assert is_whole(db)


@pytest.mark.slow
def test_sq_09_a_refused_transaction_of_one_thread_undoes_nothing_of_another(db):
    """Every second call is refused in the middle: of its tasks none may be there, of the others' all."""
    db.submit("work", "taken", id="taken")

    def work(n):
        for k in range(12):
            mine = [f"{n}-{k}-{part}" for part in range(3)]
            db.submit_many("work", mine, mine)
            never = [f"never-{name}" for name in mine]
            with pytest.raises(relet.Conflict):
                db.submit_many("work", [*never, "other content"], [*never, "taken"])

    assert in_threads(work) == []
    found = {task.id for task in itertools.chain(*pages(db))}
    assert found == {"taken", *(f"{n}-{k}-{part}" for n in range(THREADS) for k in range(12) for part in range(3))}
    assert is_whole(db)


def pages(db):
    after = None
    while page := db.tasks(limit=100, after=after):
        yield page
        after = page[-1].id


def test_one_lease_used_by_two_threads_is_ended_once(db):
    task = db.submit("work")
    lease = db.claim("work")
    answers = []

    def work(n):
        try:
            lease.complete(n)
            answers.append(n)
        except relet.Refused as refused:
            answers.append(type(refused).__name__)

    assert in_threads(work) == []
    (winner,) = [answer for answer in answers if isinstance(answer, int)]
    assert answers.count("Conflict") == THREADS - 1
    assert db.result(task.id) == winner
