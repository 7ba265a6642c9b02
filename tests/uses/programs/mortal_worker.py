"""A worker that kills itself at one point of its work: mortal_worker.py URL MODULE:APP HOLDER

DIE is WHERE:N, the N-th time that it comes to a kind of point:

    asking   a request of the task's work is about to go to the store: what was done is not kept
    told     the store has kept it, and the worker has heard nothing but that
    working  the function of a step or an effect has done its work, and nobody has its result
    sent     an HTTP request is on its way, and its answer unread

CALLS is a file that gets a line for each function that is called, before it is called. At an orderly end the worker
prints how often it came to each kind of point.
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

URL, APP, HOLDER = sys.argv[1:]
WORK = {"KeepStep", "Attach", "StartEffect", "EndEffect", "Park", "Complete", "Fail"}
WHERE, _, COUNT = os.environ.get("DIE", "").partition(":")
CALLS = os.open(os.environ["CALLS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
reached, lock = Counter(), threading.Lock()


def come_to(where):
    with lock:
        reached[where] += 1
        if where == WHERE and reached[where] == int(COUNT):
            os.kill(os.getpid(), signal.SIGKILL)


def watched(kind, name, key, function):
    """The function, with a line written before it is called and a point after it."""

    def note():
        os.write(CALLS, (json.dumps([kind, name, key]) + "\n").encode())

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args):
            note()
            value = await function(*args)
            come_to("working")
            return value

        return awaited

    @functools.wraps(function)
    def called(*args):
        note()
        value = function(*args)
        come_to("working")
        return value

    return called


step, effect, call, getresponse = Steps.step, Effects.effect, SqliteBackend.call, http.client.HTTPConnection.getresponse


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

with relet.connect(URL) as db, load_app(APP).worker(db, holder=HOLDER, signals=True) as worker:
    worker.wait()
sys.stdout.write(json.dumps(reached) + "\n")
