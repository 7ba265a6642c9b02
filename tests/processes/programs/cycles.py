"""Claim, renew, save, complete, until the queue is empty: cycles.py URL QUEUE [--tell] [--no-turns]

With --tell it says each thing that it was told is done; at the end, what it saw, as JSON. With --no-turns it passes
by the gate, as who cannot have it does, and meets the others at the lock of the file.
"""

import json
import sys
import time

import relet
from relet.store.sqlite import engine

url, queue, *options = sys.argv[1:]
TELL = "--tell" in options
if "--no-turns" in options:
    engine.gate_beside = lambda _path: None
tokens, waits = [], []


def timed(verb, *arguments):
    begun = time.monotonic()
    answer = verb(*arguments)
    waits.append(time.monotonic() - begun)
    return answer


def tell(lease, kind):
    if TELL:
        sys.stdout.write(f"{lease.token} {kind}\n")


with relet.connect(url) as db:
    if not TELL:
        sys.stdout.write("ready\n")
        sys.stdin.readline()
    while (lease := timed(db.claim, queue)) is not None:
        tokens.append(lease.token)
        tell(lease, "claimed")
        timed(lease.renew)
        if TELL:
            timed(lease.save, lease.token)
            tell(lease, "saved")
        timed(lease.complete, lease.token)
        tell(lease, "completed")
sys.stdout.write(json.dumps({"tokens": tokens, "longest_s": max(waits), "calls": len(waits)}) + "\n")
