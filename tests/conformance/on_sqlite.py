"""What the SQLite routes have in common: a folder, its clock, its rows, and its write lock."""

import threading
from contextlib import contextmanager

import apsw

from relet.store.sqlite.verify import verify_file
from relet.testing import Clock

TABLES = {
    "tasks": "seq", "inputs": "task_seq", "leases": "token", "checkpoints": "task_seq, name, version",
    "queues": "tenant, name", "events": "seq", "steps": "task_seq, name, slot", "waits": "seq", "signals": "seq",
    "artifacts": "seq", "effects": "seq", "evidence": "rowid",
}  # fmt: skip
PATIENCE_S = 20


class SqliteRoute:
    """A folder with a store in it; the routes add clients."""

    objects_per_upload = 1

    out_of_reach = (
        "UPDATE tasks SET state = 'done'",
        "DELETE FROM events",
        "COMMIT",
        "DROP TRIGGER waits_decided_once",
    )

    def __init__(self, folder, clock=None):
        self.folder = folder
        self.clock = clock or Clock()
        self._reader = None
        self._opened = []

    def opened(self, client):
        """A client, to be closed with the route."""
        self._opened.append(client)
        return client

    def rows(self):
        """Every row that is kept for ever, read past the library."""
        if self._reader is None:
            self._reader = apsw.Connection(str(self.folder / "relet.db"), flags=apsw.SQLITE_OPEN_READONLY)
        with self._reader:
            return {table: list(self._table(table, order)) for table, order in TABLES.items()}

    def _table(self, table, order):
        cursor = self._reader.execute(f"SELECT * FROM {table} ORDER BY {order}")
        for row in cursor:
            yield dict(zip([column[0] for column in cursor.get_description()], row, strict=True))

    @contextmanager
    def locked_against(self, client):
        """Hold the write lock; the function waits until the client has tried for it in vain."""
        store = client.backend.store
        waiting = threading.Event()
        attempts = []

        def trace(_cursor, sql, _bindings):
            if sql.startswith("BEGIN IMMEDIATE"):
                attempts.append(sql)
                if len(attempts) > 1:
                    waiting.set()  # the first attempt has failed: whatever was read before the lock, was read by now
            return True

        holder = apsw.Connection(store.place)
        holder.execute("BEGIN IMMEDIATE")
        lanes = (store._write, store._beat)
        for lane in lanes:
            with lane.lock:
                lane.connection().exec_trace = trace
        try:
            yield lambda: self._until(waiting)
        finally:
            holder.execute("ROLLBACK")
            holder.close()
            for lane in lanes:
                with lane.lock:
                    lane.connection().exec_trace = None

    def _until(self, waiting):
        assert waiting.wait(PATIENCE_S), "nobody waits for the lock"

    def verified(self):
        """Whatever a test has done to the store: all holds that must hold of one."""
        assert (found := verify_file(self.folder / "relet.db", None).findings) == [], found
        return True

    def close(self):
        for client in self._opened:
            client.close()
        if self._reader is not None:
            self._reader.close()
