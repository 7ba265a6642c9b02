"""Copy a store, or take it back, and die on the way.

copy_killed.py copy|back SOURCE TARGET said|statement|commit N

As it begins to say for the nth time how far it has come; at the nth statement to the database or around a commit of
the file; or before the first commit of the file, or after it.
"""

import os
import signal
import sys

import psycopg

from relet.moving import copy_back, copy_store
from relet.store.postgres import copy_in
from relet.store.sqlite.copy_out import Departure

verb, source, target, unit, n = sys.argv[1:]
left = int(n)
copy_in.TOLD_ROWS = 7
execute, commit = psycopg.RawCursor.execute, Departure._commit


def point(kind, name):
    global left  # noqa: PLW0603 - one program, one count
    left -= unit in kind
    if left == 0:
        print(name, flush=True)  # noqa: T201
        os.kill(os.getpid(), signal.SIGKILL)


def counted(cursor, query, *args, **options):
    point({"statement"}, " ".join(str(query).split())[:60])
    return execute(cursor, query, *args, **options)


def committed(departure):
    point({"statement", "commit"}, "before the commit of the file")
    commit(departure)
    point({"statement", "commit"}, "after the commit of the file")


psycopg.RawCursor.execute, Departure._commit = counted, committed
if verb == "copy":
    copy_store(source, target, told=lambda what, done: point({"said"}, f"{what} {done}"))
else:
    copy_back(source, target)
print("done")  # noqa: T201
