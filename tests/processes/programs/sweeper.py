"""Sweep and look for work again and again: sweeper.py URL QUEUE SECONDS

Says what it was granted, which should be nothing; ends when its input does.
"""

import sys
import threading

import relet

url, queue, every_s = sys.argv[1:]
ended = threading.Event()


def read():
    sys.stdin.read()
    ended.set()


threading.Thread(target=read, daemon=True).start()
with relet.connect(url, holder="sweeper") as db:
    sys.stdout.write("ready\n")
    rounds = 0
    while not ended.wait(float(every_s)):
        db.sweep()
        if (lease := db.claim(queue)) is not None:
            sys.stdout.write(f"took {lease.task_id}\n")
        rounds += 1
sys.stdout.write(f"rounds {rounds}\n")
