"""Claim, save, complete, submit more, for so long: busy.py URL SECONDS; tells its schema, then what it completed."""

import json
import sys
import time

import relet
from relet.store.migrate import SCHEMA

url, seconds = sys.argv[1:]
done = []


def tell(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


tell(SCHEMA)
with relet.connect(url) as db:
    sys.stdin.readline()
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        lease = db.claim("q", ttl=30)
        if lease is None:
            continue
        lease.save(lease.token)
        lease.renew()
        if lease.token % 7 == 0:
            lease.fail("once more", delay=0)
            continue
        lease.complete(lease.token)
        done.append([lease.task_id, lease.token])
        db.submit("q", lease.token)
tell(done)
