"""A worker whose handlers run apart from it: apart_worker.py URL [GRACE]; what they say is said by their children."""

import asyncio
import ctypes
import os
import subprocess
import sys
import threading
import time

import relet

app = relet.App()


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


@app.task("double", queue="work", isolation="process")
def double(run, n: int):
    return {"double": 2 * n, "pid": os.getpid(), "parent": os.getppid()}


@app.task("steps", queue="work", isolation="process")
async def steps(run):
    one = await run.step("one", lambda: 1)
    await run.save({"one": one})
    ok = await run.approval("go", ask={"one": one})
    return ok.accepted


@app.task("fails", queue="work", isolation="process", retry=relet.RetryPolicy(max_attempts=1))
def fails(run):
    raise relet.Permanent("no good", code="NO-GOOD")


@app.task("crashes", queue="work", isolation="process", retry=relet.RetryPolicy(max_attempts=1))
def crashes(run):
    ctypes.string_at(0)


@app.task("gil", queue="work", ttl="1s", isolation="process")
def gil(run):
    ctypes.PyDLL(None).usleep(3_000_000)
    run.check()
    return "done"


@app.task("hangs", queue="work", ttl="60s", isolation="process")
def hangs(run):
    subprocess.Popen(["sleep", "300"])
    say("hangs", os.getpid())
    while True:
        threading.Event().wait(1)


@app.task("unheeding", queue="work", ttl="3s", isolation="process")
def unheeding(run):
    subprocess.Popen(["sleep", "300"])
    say("unheeding", os.getpid())
    while True:
        threading.Event().wait(1)


@app.task("saves", queue="work", ttl="60s", isolation="process")
def saves(run):
    run.save("half")
    say("saved", os.getpid())
    threading.Event().wait()


@app.task("late", queue="work", isolation="process", timeout="0.5s", retry=relet.RetryPolicy(max_attempts=1))
def late(run):
    left = subprocess.Popen(["sleep", "300"], start_new_session=True)
    say("late", os.getpid(), left.pid)
    while True:
        time.sleep(1)


@app.task("heeds", queue="work", isolation="process")
async def heeds(run):
    say("heeds", os.getpid())
    try:
        await asyncio.sleep(300)
    finally:
        say("gives way", run.stopped.reason)


@app.task("silent", queue="work", ttl="1s", isolation="process", max_silence="3s")
def silent(run, moves: bool):
    for n in range(60):
        time.sleep(0.1)
        if moves:
            run.progress(f"at {n}")
    return "done"


if __name__ == "__main__":
    with relet.connect(sys.argv[1], holder="worker") as db:
        grace = sys.argv[2] if len(sys.argv) > 2 else 10
        with app.bound_worker(db, None, 2, holder="worker", grace=grace) as worker:
            worker.wait()
