"""A worker whose process is stopped in the middle of a task: frozen_worker.py URL blocking|awaiting

The handler says `saved`, and goes on working. When it is told to stop it says so, and tries to write all the same.
"""

import asyncio
import os
import sys
import time

import relet

url, kind = sys.argv[1:]
app = relet.App()


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def write_all_the_same(run):
    for name, verb in [
        ("save", lambda: run.lease.save("zombie")),
        ("complete", lambda: run.lease.complete("zombie")),
    ]:
        try:
            verb()
            say(name, "was taken")
        except relet.LeaseLost as refused:
            say(name, "refused", refused.reason)


@app.task("blocking", queue="work", ttl="1s")
def blocking(run):
    run.save("half")
    say("saved", run.token)
    try:
        while True:
            time.sleep(0.005)
            run.check()
    except relet.LeaseStopped as stopped:
        say("told", stopped.cause.reason)
        write_all_the_same(run)
        raise


@app.task("awaiting", queue="work", ttl="1s")
async def awaiting(run):
    await run.save("half")
    say("saved", run.token)
    try:
        await asyncio.sleep(300)
    except asyncio.CancelledError:
        say("told", run.stopped.reason)
        await asyncio.to_thread(write_all_the_same, run)
        raise


@app.task("other", queue="work")
def other(run):
    say("other done by", os.getpid())
    return "done"


with relet.connect(url, holder="frozen") as db, app.worker(db, signals=True, grace=0) as worker:
    worker.wait()
