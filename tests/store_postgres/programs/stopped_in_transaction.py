"""Change a row in a transaction of a lease, say so, and go on when told: stopped_in_transaction.py URL"""

import sys

import relet

with relet.connect(sys.argv[1]) as db:
    lease = db.claim("work", ttl=60)
    try:
        with lease.transaction() as connection:
            connection.execute("UPDATE mine SET n = n + 1")
            sys.stdout.write("inside\n")
            sys.stdin.readline()
            connection.execute("UPDATE mine SET n = n + 1")
    except relet.Error as wrong:
        sys.stdout.write(f"{wrong.code}\n")
    else:
        sys.stdout.write("committed\n")
