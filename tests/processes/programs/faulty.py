"""Run a program that is killed at a commit: faulty.py SCRIPT [ARGUMENT]...

FAULT is WHEN:VERB:N, such as before:claim:1, after:save:2: before its commit, or after it and before anybody is
told, for the N-th transaction of that verb.
"""

import os
import runpy
import signal
import sys

from relet.store.sqlite import lane

WHEN, VERB, COUNT = os.environ["FAULT"].split(":")
commit, seen = lane.commit, 0


def verb_under_way():
    """The verb that this commit is for, found on the stack: the engine keeps it in `operation`."""
    frame = sys._getframe()
    while frame is not None:
        if (operation := frame.f_locals.get("operation")) is not None:
            return operation.name
        frame = frame.f_back
    return None


def faulty(connection):
    global seen  # noqa: PLW0603 - one process, one fault
    hit = False
    if verb_under_way() == VERB:
        seen += 1
        hit = seen == int(COUNT)
    if hit and WHEN == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    commit(connection)
    if hit:
        os.kill(os.getpid(), signal.SIGKILL)


lane.commit = faulty
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
