"""A worker whose wall clock is stepped: stepped_worker.py URL

While its task runs it answers each line with its wall clock and what it believes; `end` ends the task.
"""

import json
import sys
import time

import relet

app = relet.App()


@app.task("work", ttl="2s")
def work(run):
    lines = iter(sys.stdin.readline, "")
    for line in lines:
        if line.strip() == "end":
            break
        run.check()
        answer = {"wall": time.time(), "status": str(run.lease.status), "expires_in": run.lease.expires_in}
        sys.stdout.write(json.dumps(answer) + "\n")
    return "done"


with relet.connect(sys.argv[1], holder="stepped") as db, app.worker(db, signals=True) as worker:
    sys.stdout.write("ready\n")
    worker.wait()
