"""Takes so many tasks at once and never works on them: doomed_holder.py URL QUEUE N TTL; prints how many it got."""

import sys

import relet

url, queue, n, ttl = sys.argv[1:]
with relet.connect(url) as db:
    leases = db.claim_many(queue, int(n), ttl=ttl)
    sys.stdout.write(f"{len(leases)}\n")
    sys.stdout.flush()
    sys.stdin.readline()
