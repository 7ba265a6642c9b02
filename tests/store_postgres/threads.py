"""Several things at the same time, each in a thread of its own."""

import threading

PATIENCE_S = 120


def all_at_once(*works):
    """Answers when all have ended; raises what the first of them raised."""
    wrong = []

    def run(work):
        try:
            work()
        except BaseException as raised:  # told by the thread of the test
            wrong.append(raised)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "a thread did not come to its end"
    if wrong:
        raise wrong[0]
