"""Workers that kill themselves at one point of their work: nursery.py MODULE:APP

Each line of its input, [url, holder, die, calls], is one worker: a process forked from this one, which has imported
all that they need. Its pid is printed, then its exit code. `die` is WHERE:N, the N-th time that the worker comes to a
kind of point, or null:

    asking   a request of the task's work is about to go to the store: what was done is not kept
    told     the store has kept it, and the worker has heard nothing but that
    working  the function of a step or an effect has done its work, and nobody has its result
    sent     an HTTP request is on its way, and its answer unread

`calls` is a file that gets a line for each function that is called, before it is called; at an orderly end, a last
one that says how often the worker came to each kind of point.
"""

import functools
import http.client
import inspect
import json
import os
import signal
import sys
import threading
from collections import Counter

import relet
from relet.client.durable.effects import Effects
from relet.client.durable.steps import Steps
from relet.store.sqlite.backend import SqliteBackend
from relet.worker.main import load_app

WORK = {"KeepStep", "Attach", "StartEffect", "EndEffect", "Park", "Complete", "Fail"}
reached, lock = Counter(), threading.Lock()


class Fate:
    """Of this process, once it is a worker."""

    die: str | None
    calls: int


def come_to(where):
    with lock:
        reached[where] += 1
        if f"{where}:{reached[where]}" == Fate.die:
            os.kill(os.getpid(), signal.SIGKILL)


def write(value):
    os.write(Fate.calls, (json.dumps(value) + "\n").encode())


def watched(kind, name, key, function):
    """The function, with a line written before it is called and a point after it."""

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args):
            write([kind, name, key])
            value = await function(*args)
            come_to("working")
            return value

        return awaited

    @functools.wraps(function)
    def called(*args):
        write([kind, name, key])
        value = function(*args)
        come_to("working")
        return value

    return called


step, effect, call, getresponse = (
    Steps.step,
    Effects.effect,
    SqliteBackend.call,
    http.client.HTTPConnection.getresponse,
)


def watched_step(self, name, function, args, key, *others):
    return step(self, name, watched("step", name, key, function), args, key, *others)


def watched_effect(self, name, payload, function, *others):
    return effect(self, name, payload, watched("effect", name, None, function), *others)


def watched_call(self, ask, **named):
    kind = type(ask).__name__
    if kind in WORK:
        come_to("asking")
    answer = call(self, ask, **named)
    # A claim counts when it was granted: how often a worker asks in vain is no matter of the task.
    if kind in WORK or (kind == "Claim" and answer):
        come_to("told")
    return answer


def watched_getresponse(self, *args, **named):
    come_to("sent")
    return getresponse(self, *args, **named)


Steps.step, Effects.effect, SqliteBackend.call = watched_step, watched_effect, watched_call
http.client.HTTPConnection.getresponse = watched_getresponse

app = load_app(sys.argv[1])


def live(url, holder, die, calls):
    Fate.die, Fate.calls = die, os.open(calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with relet.connect(url) as db, app.worker(db, holder=holder, signals=True) as worker:
        worker.wait()
    write(reached)


def say(number):
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


for line in iter(sys.stdin.readline, ""):
    if (pid := os.fork()) == 0:
        live(*json.loads(line))
        break
    say(pid)
    say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
