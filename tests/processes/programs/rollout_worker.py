"""A worker that is rolled out again and again: rollout_worker.py URL GRACE

`steps` counts its runs in a checkpoint, waits to be asked to end, and gives the task back. `deaf` never listens.
`long` waits for a line from outside, `short` is done at once.
"""

import asyncio
import sys
import threading

import relet
from tests.waiting import eventually

url, grace = sys.argv[1:]
app = relet.App()


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")


@app.task("steps", queue="work")
def steps(run):
    runs = (run.load() or 0) + 1
    run.save(runs)
    say("steps", runs)
    if runs <= 5:
        eventually(lambda: run.draining)
        say("draining")
        run.lease.release()
    return runs


@app.task("patient", queue="work")
async def patient(run):
    say("patient")
    try:
        await asyncio.sleep(300)
    finally:
        say("stopped", run.stopped.reason)


@app.task("deaf", queue="work")
def deaf(run):
    say("deaf")
    threading.Event().wait(300)


@app.task("long", queue="work")
def long(run):
    say("long")
    sys.stdin.readline()
    return "long"


@app.task("short", queue="work")
def short(run):
    say("short")
    return "short"


with relet.connect(url, holder="same-name") as db, app.worker(db, signals=True, grace=grace) as worker:
    worker.wait()
say("ended")
