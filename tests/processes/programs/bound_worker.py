"""A worker that does nothing else, as `relet worker` is: what it holds ends with it. Arguments: url, concurrency."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import relet

app = relet.App()
URL = sys.argv[1]


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


@app.task("work", ttl="60s")
def work(run):
    run.save("half")
    say("holds", run.token, run.lease.handle)
    threading.Event().wait()


@app.task("forks", queue="work", ttl="60s")
def forks(run):
    child = os.fork()
    if child == 0:
        os.setsid()  # else it would be killed with the worker's group
        threading.Event().wait()
    say("holds", child)
    threading.Event().wait()


@app.task("forks_within", queue="work", ttl="60s")
def forks_within(run):
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(300,))
    child.start()
    say("holds", child.pid)
    threading.Event().wait()


@app.task("replaced", queue="work", ttl="60s")
def replaced(run):
    say("holds")
    os.execv(sys.executable, [sys.executable, "-c", "print('another', flush=True); input()"])


@app.task("starts", queue="work", ttl="60s")
def starts(run):
    child = subprocess.Popen(["sleep", "300"])
    say("holds", child.pid, os.getpid())
    threading.Event().wait()


app.run(URL, concurrency=int(sys.argv[2]) if len(sys.argv) > 2 else 1)
