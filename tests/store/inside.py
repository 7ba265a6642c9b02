"""Looks into a store past its clients: tables as they stand, files as they lie."""

import subprocess
import sys
from contextlib import closing

import apsw

LASTING = (
    "tasks", "inputs", "leases", "checkpoints", "events", "queues", "totals", "steps", "waits", "signals",
    "artifacts", "effects", "evidence", "late_beats",
)  # fmt: skip


def path_of(folder):
    return folder / "relet.db"


def ask(folder, sql, *values, path=None):
    """Rows of a query, over a connection of the test's own; of the folder's store unless a file is given."""
    with closing(apsw.Connection(str(path or path_of(folder)), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.set_busy_timeout(5_000)
        return connection.execute(sql, values).fetchall()


def contents(folder):
    """Everything that lasts: what a write that was refused or undone must leave as it was."""
    kept = {table: ask(folder, f"SELECT * FROM {table}") for table in LASTING}
    kept["tokens"] = ask(folder, "SELECT epoch, n FROM meta")
    return kept


def lane(client, name="write"):
    """A lane of the engine below a client."""
    return getattr(client.backend.store, f"_{name}")


LOCKED = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
except OSError:
    sys.exit(7)
"""
HELD_BY_SOMEBODY = 7


def is_locked(path):
    """Does another process find SQLite's shared lock on the file held."""
    return subprocess.run([sys.executable, "-c", LOCKED, path], check=False).returncode == HELD_BY_SOMEBODY
