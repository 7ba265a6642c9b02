"""Run a program that is killed at a commit: faulty.py SCRIPT [ARGUMENT]...

FAULT is WHEN:VERB:N, such as before:claim:1, after:save:2: before its commit, or after it and before anybody is
told, for the N-th transaction of that verb.
"""

import os
import runpy
import signal
import sys

from relet.store.postgres import engine
from relet.store.postgres.hot import NOT_PLAIN
from relet.store.sqlite import lane

WHEN, VERB, COUNT = os.environ["FAULT"].split(":")
seen = 0
commit, transact, alone = lane.commit, engine.transact, engine.alone


def verb_under_way():
    """The verb that this commit is for, found on the stack: the engine keeps it in `operation`."""
    frame = sys._getframe()
    while frame is not None:
        if (operation := frame.f_locals.get("operation")) is not None:
            return operation.name
        frame = frame.f_back
    return None


def strike(when):
    """Die here, if this is the time."""
    global seen  # noqa: PLW0603 - one process, one fault
    if verb_under_way() != VERB:
        return
    if when == WHEN and seen + 1 == int(COUNT):
        os.kill(os.getpid(), signal.SIGKILL)
    seen += when == "after"


def on_sqlite(connection):
    strike("before")
    commit(connection)
    strike("after")


def on_postgres(connection, begin, work, most_s=None):
    def last():
        answer = work()
        strike("before")
        return answer

    answer = transact(connection, begin, last, most_s)
    strike("after")
    return answer


def on_postgres_at_once(connection, work):
    """One statement, which the server commits."""
    strike("before")
    answer = alone(connection, work)
    if answer is not NOT_PLAIN:
        strike("after")
    return answer


def by_service():
    """For who asks a service: before the request is sent, and after the answer has come."""
    from relet.client.http.line import Line

    ask = Line.ask

    def asked(line, *request, **more):
        strike("before")
        answer = ask(line, *request, **more)
        strike("after")
        return answer

    Line.ask = asked


lane.commit, engine.transact, engine.alone = on_sqlite, on_postgres, on_postgres_at_once
if "SERVICE" in os.environ:
    by_service()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
