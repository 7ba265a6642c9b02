"""A worker whose handler holds the interpreter's lock for three ttls: held_gil.py URL HEARTBEAT [MAX_SILENCE]."""

import ctypes
import sys

import relet

url, heartbeat, *silence = sys.argv[1:]
app = relet.App()
native = ctypes.PyDLL(None)


@app.task("work", ttl="1s", heartbeat=heartbeat, max_silence=silence[0] if silence else None)
def work(run):
    sys.stdout.write("begins\n")
    sys.stdout.flush()
    native.usleep(3_000_000)  # PyDLL keeps the lock, as a careless native library does
    return "done"


@app.task("waits", queue="work", ttl="1s", heartbeat=heartbeat)
def waits(run):
    sys.stdout.write("begins\n")
    sys.stdout.flush()
    sys.stdin.readline()
    run.check()
    return "done"


with relet.connect(url, holder="worker") as db, app.worker(db, signals=True) as worker:
    if worker._slots.sidecar is not None:
        sys.stdout.write(f"{worker._slots.sidecar.process.pid}\n")
        sys.stdout.flush()
    worker.wait()
