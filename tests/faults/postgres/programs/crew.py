"""Many processes that claim, write down what they were given, save and complete: crew.py URL FOLDER N [QUEUE]

Each says "up" when it runs; they end when a line is told, and how each of them ended is said then. Each writes a file
of its own, a JSON list per line: what, task, token, attempt, when it was asked for and when that was answered, on the
clock that all processes of a machine share.
"""

import contextlib
import json
import os
import select
import sys
import time

import relet

url, folder, n, *rest = sys.argv[1:]
QUEUE = rest[0] if rest else "load"
TTL_S = 6
RENEWED_EACH = 20
PAUSE_S = 0.05


class Worker:
    """One process of them."""

    def __init__(self, db, lines, ending):
        self._db, self._lines, self._ending = db, lines, ending
        self._done = 0
        self._request = None

    def run(self):
        while not self._is_over():
            if (lease := self._claim()) is not None:
                with contextlib.suppress(relet.LeaseLost):
                    self._work(lease)

    def _claim(self):
        # The same request for as long as nobody can say whether it was granted.
        self._request = self._request or os.urandom(8).hex()
        began = time.monotonic()
        try:
            lease = self._db.claim(QUEUE, ttl=TTL_S, wait=0.5, request_id=self._request)
        except relet.LeaseLost:
            self._request = None  # granted, and lost before we were told
            return None
        except (relet.Unavailable, relet.OutcomeUnknown) as wrong:
            self._trouble("claim", wrong, began)
            return None
        self._request = None
        if lease is not None:
            self._note("claimed", lease, began)
        return lease

    def _work(self, lease):
        self._insist("saved", lease, lambda: lease.save({"by": lease.token}))
        self._done += 1
        if self._done % RENEWED_EACH == 0:
            self._insist("renewed", lease, lease.renew)
        self._insist("completed", lease, lambda: lease.complete(lease.token))

    def _insist(self, what, lease, verb):
        """Until it was answered, one way or the other."""
        while True:
            began = time.monotonic()
            try:
                verb()
            except relet.LeaseLost as lost:
                self._note(f"lost {lost.reason}", lease, began)
                raise
            except (relet.Unavailable, relet.OutcomeUnknown) as wrong:
                self._trouble(what, wrong, began)
                if self._is_over():
                    raise relet.LeaseLost("the end") from wrong
            else:
                self._note(what, lease, began)
                return

    def _note(self, what, lease, began):
        self._write(what, lease.task_id, lease.token, lease.attempt, began, time.monotonic())

    def _trouble(self, what, wrong, began):
        self._write("trouble", what, f"{type(wrong).__name__}: {wrong}", 0, began, time.monotonic())
        time.sleep(PAUSE_S)

    def _write(self, *line):
        self._lines.write(json.dumps(line) + "\n")

    def _is_over(self):
        return bool(select.select([self._ending], [], [], 0)[0])


def child(number, ending):
    with open(f"{folder}/worker-{number}", "a", buffering=1, encoding="utf-8") as lines, relet.connect(url) as db:
        os.write(1, b"up\n")
        Worker(db, lines, ending).run()


def main():
    ending, told = os.pipe()
    children = []
    for number in range(int(n)):
        pid = os.fork()
        if pid == 0:
            os.close(told)
            try:
                child(number, ending)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        children.append(pid)
    sys.stdin.readline()
    os.close(told)
    ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    sys.stdout.write(json.dumps(ended) + "\n")


main()
