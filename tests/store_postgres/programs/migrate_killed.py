"""Migrate a store, and die at the nth statement: before it is sent, or once it was and nobody waits for its answer.

migrate_killed.py FOLDER URL SCHEMA before|sent N [post]
"""

import os
import signal
import sys
from pathlib import Path

import psycopg

from relet.store.postgres.upgrade import Release, migrate

folder, url, schema, when, n, *post = sys.argv[1:]
left = int(n)
execute = psycopg.RawCursor.execute


def counted(cursor, query, *args, **options):
    global left  # noqa: PLW0603 - one program, one count
    left -= 1
    if left == 0:
        if when == "sent" and not args:
            cursor.connection.pgconn.send_query(query.encode())
            cursor.connection.pgconn.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(cursor, query, *args, **options)


psycopg.RawCursor.execute = counted
migrate(url, schema, to=Release(Path(folder), 2, 1, 2), post=bool(post))
print("done")  # noqa: T201
