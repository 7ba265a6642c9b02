"""Callers that all wait for the write lane before the first of them may begin."""

import threading

from tests.store.forking import held_elsewhere
from tests.store.inside import ask, lane
from tests.waiting import eventually

LAPSES = "SELECT lapse_count FROM meta"


def all_at_once(db, *works):
    """What each came to, an answer or what was raised. All wait in this order before the first may begin."""
    outcomes: list = [None] * len(works)

    def run(n, work):
        try:
            outcomes[n] = work()
        except BaseException as raised:
            outcomes[n] = raised

    threads = []
    with held_elsewhere(lane(db).lock):
        for n, work in enumerate(works):
            threads.append(threading.Thread(target=run, args=(n, work)))
            threads[-1].start()
            eventually(lambda n=n: len(lane(db)._line) == n + 1)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive(), "somebody was never told"
    return outcomes


def shared(db, work):
    """Some work of the test's own, as a request would be done."""
    return lambda: lane(db).share(work)


def count_one(connection):
    connection.execute("UPDATE meta SET lapse_count = lapse_count + 1")
    return "counted"


def counted(tmp_path):
    return ask(tmp_path, LAPSES)[0][0]
