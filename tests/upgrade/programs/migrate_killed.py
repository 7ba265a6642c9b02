"""Migrate, and be killed at the n-th statement: migrate_killed.py URL N; prints "done" when there were fewer."""

import os
import signal
import sys
from itertools import count

from relet.store.sqlite import upgrade
from relet.store.sqlite.connect import open_connection

url, n = sys.argv[1], int(sys.argv[2])
seen = count(1)


def opened(path, synchronous):
    connection = open_connection(path, synchronous=synchronous)

    def trace(*_):
        if next(seen) == n:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    connection.exec_trace = trace
    return connection


upgrade.open_connection = opened
upgrade.migrate(url)
sys.stdout.write("done\n")
