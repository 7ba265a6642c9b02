"""A worker of a queue that many work on: crowded_worker.py URL CONCURRENCY SECONDS; tells what it begins."""

import sys
import time

import relet

url, concurrency, seconds = sys.argv[1:]
app = relet.App()


@app.task("work", ttl="1s", retry=relet.RetryPolicy(max_attempts=1_000, max_losses=1_000, base="50ms"))
def work(run):
    sys.stdout.write(f"{run.task.id} {run.token}\n")
    time.sleep(float(seconds))  # the work itself
    return run.token


with relet.connect(url) as db, app.worker(db, concurrency=int(concurrency), signals=True) as worker:
    worker.wait()
