"""A worker one of whose tasks kills its process: poison_worker.py URL"""

import os
import signal
import sys

import relet

app = relet.App()


@app.task("poison", queue="work", ttl="0.5s", retry=relet.RetryPolicy(base="10ms", max_losses=3))
def poison(run):
    os.kill(os.getpid(), signal.SIGKILL)


@app.task("plain", queue="work")
def plain(run):
    return "done"


with relet.connect(sys.argv[1]) as db, app.worker(db, signals=True) as worker:
    worker.wait()
