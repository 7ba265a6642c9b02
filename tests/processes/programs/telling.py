"""Threads submit, claim, save, complete, and tell each once it is acknowledged: telling.py URL TASKS [SYNCHRONOUS]

With a third argument every commit is made with that setting in place of the one that relet has.
"""

import functools
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import relet
from relet.store.sqlite import connect, engine

url, tasks, *setting = sys.argv[1:]
LARGE = "x" * 60_000


def tell(verb, lease, **more):
    os.write(1, json.dumps({"verb": verb, "task": lease.task_id, "token": lease.token, **more}).encode() + b"\n")


def opened(path, **how):
    return connect.open_connection(path, **{**how, "synchronous": setting[0]})


if setting:
    engine.open_connection = functools.wraps(connect.open_connection)(opened)


def work(n):
    db.submit("work", n, id=f"t-{n}")
    lease = db.claim(task_id=f"t-{n}", ttl=600)
    tell("claimed", lease)
    for size in (n, len(LARGE)):
        version = lease.save([n, LARGE[:size]])
        tell("saved", lease, version=version)
    if n % 4:
        lease.complete(n)
        tell("completed", lease, result=n)


# Several at once, so that commits which are made together are among them.
with relet.connect(url) as db, ThreadPoolExecutor(3) as threads:
    list(threads.map(work, range(int(tasks))))
