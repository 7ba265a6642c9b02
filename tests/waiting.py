"""Wait for what a test expects: no longer than needed, and never for ever."""

import os
import threading
import time

LOOK_EVERY_S = 0.005
PATIENCE_S = float(os.environ.get("RELET_TESTS_PATIENCE_S", "15"))
"""Far more than anything takes; a run that breaks the code on purpose, and waits in vain, asks for less."""


def eventually(condition, within=PATIENCE_S):
    """What the condition answers once it is true; fails when it is not in time."""
    until = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < until, f"it did not come true within {within} s"
        time.sleep(LOOK_EVERY_S)
    return found


class Gate(threading.Event):
    """An event whose `pass_through` fails, instead of going on, when nobody opens it."""

    def pass_through(self, within=PATIENCE_S):
        assert self.wait(within), f"the gate did not open within {within} s"
