"""Fork the test process and talk with the child, each word within a bounded time."""

import json
import os
import select
import signal
import threading
import traceback
from contextlib import contextmanager

from tests.waiting import Gate

WITHIN_S = 5


class Child:
    """A fork that runs `work(child)`; what it says, and at last its answer, is heard in order."""

    def __init__(self, work):
        self._said, self._say = os.pipe()
        self._waits, self._go_on = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(work)

    def _run(self, work):
        try:
            self.say(work(self))
        except BaseException:
            self._write("raised", traceback.format_exc())
        os._exit(0)

    def say(self, value):
        """In the child: let the parent hear this."""
        self._write("value", value)

    def wait(self):
        """In the child: until the parent says so."""
        os.read(self._waits, 1)

    def _write(self, what, value):
        os.write(self._say, json.dumps([what, value]).encode() + b"\n")

    def hear(self):
        """In the parent: the next thing said; fails when there is none in time, or when the child raised."""
        line = b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([self._said], [], [], WITHIN_S)
            assert readable, f"the child said nothing within {WITHIN_S} s"
            line += os.read(self._said, 1)
        what, value = json.loads(line)
        assert what == "value", value
        return value

    def go_on(self):
        """In the parent: end the child's wait."""
        os.write(self._go_on, b"x")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        for end in (self._said, self._say, self._waits, self._go_on):
            os.close(end)


def forked(work):
    """What `work()` answers in a forked child."""
    with Child(lambda _child: work()) as child:
        return child.hear()


@contextmanager
def held_elsewhere(lock):
    """Another thread has it, and does not let go before the block ends."""
    taken, enough = Gate(), Gate()

    def hold():
        with lock:
            taken.set()
            enough.pass_through()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.pass_through()
    try:
        yield
    finally:
        enough.set()
        thread.join()
