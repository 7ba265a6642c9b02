"""Wait for what a test expects: no longer than needed, and never for ever."""

import threading
import time

LOOK_EVERY_S = 0.005


def eventually(condition, within=15.0):
    """What the condition answers once it is true; fails when it is not in time."""
    until = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < until, f"it did not come true within {within} s"
        time.sleep(LOOK_EVERY_S)
    return found


class Gate(threading.Event):
    """An event whose `pass_through` fails, instead of going on, when nobody opens it."""

    def pass_through(self, within=15.0):
        assert self.wait(within), f"the gate did not open within {within} s"
