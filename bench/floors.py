"""The floors: the least that any queue on SQLite must do for one claim and one completion, as bare loops.

Same engine and settings as the store: apsw, WAL, synchronous=FULL, one BEGIN IMMEDIATE for each commit, the clock
read under the lock, tokens that grow, the token and the expiry checked by whatever ends a lease, a partial index on
the ready rows. Nothing else: no register of leases, no history, no limits, no retry, no JSON; one table, one row a
task, and the next token is a number that this one program counts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import apsw

TTL_MS = 60_000
QUEUE = "bench"
INPUT = '{"topic":"grain"}'
RESULT = '{"ok":true}'

SCHEMA = """
CREATE TABLE task (
    id INTEGER PRIMARY KEY, queue TEXT NOT NULL, priority INTEGER NOT NULL, state TEXT NOT NULL,
    attempt INTEGER NOT NULL, token INTEGER, holder TEXT, expires INTEGER, input TEXT, result TEXT,
    created INTEGER NOT NULL
) STRICT;
CREATE INDEX task_ready ON task (queue, priority DESC, id) WHERE state = 'ready';
CREATE TABLE lease (token INTEGER PRIMARY KEY, task INTEGER NOT NULL, holder TEXT, expires INTEGER) STRICT;
"""
INSERT = "INSERT INTO task VALUES (NULL, ?, 0, ?, 0, NULL, NULL, NULL, ?, NULL, ?)"
CLAIM = """
UPDATE task SET state = 'leased', attempt = attempt + 1, token = ?, holder = ?, expires = ?
WHERE id = (SELECT id FROM task WHERE queue = ? AND state = 'ready' ORDER BY priority DESC, id LIMIT 1)
RETURNING id, input
"""
COMPLETE = """
UPDATE task SET state = 'done', result = ?
WHERE id = ? AND token = ? AND state = 'leased' AND expires > ?
"""
RENEW = """
UPDATE lease SET expires = max(expires, ?) FROM json_each(?) AS given
WHERE token = given.value AND expires > ?
RETURNING token
"""

Grant = tuple[int, int]
"""The task and the token."""


def now_ms() -> int:
    """A clock that no step of the wall clock moves."""
    return time.monotonic_ns() // 1_000_000


class Floor:
    """One file with the bare table in it, and the bare verbs."""

    def __init__(self, path: Path, *, durable: bool = True, made: bool = False) -> None:
        """`made`: another process made the tables already."""
        self.db = apsw.Connection(str(path))
        self.db.pragma("journal_mode", "wal")
        self.db.pragma("synchronous", "FULL" if durable else "NORMAL")
        if not made:
            self.db.execute(SCHEMA)
        self.tokens = count(1)

    def fill(self, ready: int, done: int = 0) -> None:
        """Put in rows, in one transaction."""
        self.db.execute("BEGIN IMMEDIATE")
        created = now_ms()
        rows = ((QUEUE, state, INPUT, created) for state, n in (("done", done), ("ready", ready)) for _ in range(n))
        self.db.executemany(INSERT, rows)
        self.db.execute("COMMIT")

    def grant(self, leases: int) -> list[int]:
        """Put in live leases, and return their tokens."""
        tokens = [next(self.tokens) for _ in range(leases)]
        expires = now_ms() + TTL_MS
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany("INSERT INTO lease VALUES (?, 1, 'A', ?)", [(token, expires) for token in tokens])
        self.db.execute("COMMIT")
        return tokens

    def claim(self) -> Grant | None:
        """Take the next ready task in a commit of its own."""
        self.db.execute("BEGIN IMMEDIATE")
        grant = self._claim(now_ms())
        self.db.execute("COMMIT")
        return grant

    def complete(self, grant: Grant) -> None:
        """End a lease in a commit of its own."""
        self.db.execute("BEGIN IMMEDIATE")
        self._complete(grant, now_ms())
        self.db.execute("COMMIT")

    def complete_and_claim(self, grant: Grant) -> Grant | None:
        """End one lease and take the next task in one commit."""
        self.db.execute("BEGIN IMMEDIATE")
        now = now_ms()
        self._complete(grant, now)
        following = self._claim(now)
        self.db.execute("COMMIT")
        return following

    def together(self, verbs: Iterable[Grant | None]) -> list[Grant | None]:
        """Several verbs in one commit: a grant is completed, and None takes the next task."""
        self.db.execute("BEGIN IMMEDIATE")
        now = now_ms()
        answers = [self._claim(now) if grant is None else self._complete(grant, now) for grant in verbs]
        self.db.execute("COMMIT")
        return answers

    def renew(self, tokens: Iterable[int]) -> int:
        """Renew leases with one statement; answers how many were still alive."""
        self.db.execute("BEGIN IMMEDIATE")
        now = now_ms()
        alive = self.db.execute(RENEW, (now + TTL_MS, json.dumps(list(tokens)), now)).fetchall()
        self.db.execute("COMMIT")
        return len(alive)

    def close(self) -> None:
        """Let go of the file."""
        self.db.close()

    def _claim(self, now: int) -> Grant | None:
        token = next(self.tokens)
        row = self.db.execute(CLAIM, (token, "A", now + TTL_MS, QUEUE)).fetchone()
        return (int(row[0]), token) if row else None

    def _complete(self, grant: Grant, now: int) -> None:
        self.db.execute(COMPLETE, (RESULT, *grant, now))
        if self.db.changes() != 1:
            raise RuntimeError("the floor lost a lease that nobody else could have taken")
