"""A holder that asks without pause whether it still holds: checking.py URL TASK. It prints the last good instant."""

import sys
import time

import relet

url, task_id = sys.argv[1:]
with relet.connect(url, holder="checking") as db:
    lease = db.claim(task_id=task_id)
    sys.stdout.write("begins\n")
    good_ms = 0.0
    with lease.keep_quietly():
        while True:
            before_ms = time.monotonic() * 1e3
            try:
                lease.check()
            except relet.LeaseLost:
                break
            good_ms = before_ms
    sys.stdout.write(f"{good_ms}\n")
