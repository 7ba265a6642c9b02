"""A ledger outside of the store, in a database of its own: what was written under which token, what was charged."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw

from relet.fences.sqlite import SqliteFence

TABLES = """
PRAGMA journal_mode = wal;
CREATE TABLE IF NOT EXISTS writes (seq INTEGER PRIMARY KEY, task TEXT NOT NULL, token INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS charges (key TEXT PRIMARY KEY, task TEXT NOT NULL, calls INTEGER NOT NULL);
"""
BUSY_MS = 20_000
"""Longer than any worker is stopped, perhaps with the lock of this file."""


class Ledger:
    """One connection for each thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = threading.local()
        self._connection().execute(TABLES).fetchall()

    def write(self, task: str, token: int) -> None:
        """The last act of a handler, behind a fence. Raises `StaleToken` for a late holder."""
        with SqliteFence(self._connection()).write(task, token) as connection:
            connection.execute("INSERT INTO writes (task, token) VALUES (?, ?)", (task, token))

    def charge(self, task: str, key: str) -> int:
        """A service that remembers its keys: how often it has been called under this one."""
        charged = (
            "INSERT INTO charges VALUES (?, ?, 1) ON CONFLICT (key) DO UPDATE SET calls = calls + 1 RETURNING calls"
        )
        return self._connection().execute(charged, (key, task)).fetchall()[0][0]

    def ask(self, statement: str) -> list[tuple]:
        return self._connection().execute(statement).fetchall()

    def _connection(self) -> apsw.Connection:
        if not hasattr(self._threads, "connection"):
            connection = self._threads.connection = apsw.Connection(str(self.path))
            connection.set_busy_timeout(BUSY_MS)
            connection.execute("PRAGMA synchronous = normal")  # the fence asks for more where it must be
        return self._threads.connection
