"""A program under exec that ends its lease itself, through the handle in its environment."""

import os
import sys

import relet

how, then = sys.argv[1:]
with relet.connect() as db:
    lease = db.lease(os.environ["RELET_HANDLE"])
    if how == "complete":
        lease.complete("by the program")
    elif how == "fail":
        lease.fail("by the program", retry=False, code="MINE")
    elif how == "release":
        lease.release()
    elif how.startswith("park"):
        lease.park("publish")
        if how == "park and be answered":
            db.decide(lease.task_id, "publish", "accept")
    else:
        lease.save("by the program")
sys.exit(int(then))
