"""The floors on PostgreSQL: the least that any queue on it must do for a claim and a completion, as bare statements.

psycopg over the server's own socket, one statement a commit, prepared by the driver; the server's clock, tokens from
a sequence, the token and the expiry checked by whatever ends a lease, a partial index on the ready rows, SKIP LOCKED.
Nothing else: no register of leases, no history, no limits, no retry, no JSON; one table, one row a task.

A limit is written into its statement: as a parameter it would be planned for any number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.floors import INPUT, QUEUE, RESULT, TTL_MS

SCHEMA = """
CREATE SEQUENCE tokens;
CREATE TABLE task (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue text NOT NULL, priority integer NOT NULL,
    state text NOT NULL, attempt integer NOT NULL, token bigint, holder text, expires bigint, input text,
    result text, created bigint NOT NULL
);
CREATE INDEX task_ready ON task (queue, priority DESC, id) WHERE state = 'ready';
-- Room on each page for a second version of all that is on it: else one statement that renews every lease of a page
-- moves some of them to other pages, and has to tell each index of that.
CREATE TABLE lease (
    token bigint PRIMARY KEY, task bigint NOT NULL, holder text, expires bigint NOT NULL
) WITH (fillfactor = 50);
"""
NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
INSERT = f"""
INSERT INTO task (queue, priority, state, attempt, input, created)
SELECT %s, 0, %s, 0, %s, {NOW} FROM generate_series(1, %s)
"""
GRANT = f"""
INSERT INTO lease SELECT nextval('tokens'), 1, 'A', {NOW} + %s FROM generate_series(1, %s) RETURNING token
"""
TAKE = f"""
UPDATE task SET state = 'leased', attempt = attempt + 1, token = nextval('tokens'), holder = 'A', expires = {NOW} + %s
"""
READY = """
SELECT id FROM task WHERE queue = %s AND state = 'ready' ORDER BY priority DESC, id FOR UPDATE SKIP LOCKED
"""
CLAIM = f"{TAKE} WHERE id = ({READY} LIMIT 1) RETURNING id, token, input"
COMPLETE = f"""
UPDATE task SET state = 'done', result = %s
WHERE id = %s AND token = %s AND state = 'leased' AND expires > {NOW}
"""
COMPLETE_MANY = f"""
UPDATE task SET state = 'done', result = given.result
FROM unnest(%b::bigint[], %b::bigint[], %b::text[]) AS given (id, token, result)
WHERE task.id = given.id AND task.token = given.token AND task.state = 'leased' AND task.expires > {NOW}
"""
RENEW = f"""
UPDATE lease SET expires = greatest(expires, {NOW} + %s) FROM unnest(%b::bigint[]) AS given (token)
WHERE lease.token = given.token AND lease.expires > {NOW}
RETURNING lease.token
"""
PAGE = "SELECT * FROM task WHERE queue = %s ORDER BY id LIMIT 100"

Grant = tuple[int, int]
"""The task and the token."""


class PostgresFloor:
    """One connection to a database with the bare tables in it, and the bare verbs."""

    def __init__(self, url: str, *, durable: bool = True, batch: int = 100) -> None:
        """`batch`: how many tasks `claim_many` takes."""
        import psycopg

        self.db = psycopg.connect(url, autocommit=True)
        self.db.execute(SCHEMA)
        if not durable:
            self.db.execute("SET synchronous_commit = off")
        self._claim_many = f"""
            WITH next AS MATERIALIZED ({READY} LIMIT {batch})
            {TAKE} FROM next WHERE task.id = next.id RETURNING task.id, task.token, task.input
        """

    def fill(self, ready: int, done: int = 0) -> None:
        """Put in tasks; those that are done leave a lease that is over."""
        for state, n in (("done", done), ("ready", ready)):
            self.db.execute(INSERT, (QUEUE, state, INPUT, n))
        self.grant(done, ttl_ms=-TTL_MS)

    def grant(self, leases: int, ttl_ms: int = TTL_MS) -> list[int]:
        """Put in leases, and return their tokens."""
        return [token for (token,) in self.db.execute(GRANT, (ttl_ms, leases))]

    def claim(self) -> Grant | None:
        """Take the next ready task."""
        row = self.db.execute(CLAIM, (TTL_MS, QUEUE)).fetchone()
        return row and row[:2]

    def claim_many(self) -> list[Grant]:
        """Take the next batch of ready tasks with one statement."""
        return [row[:2] for row in self.db.execute(self._claim_many, (QUEUE, TTL_MS))]

    def complete(self, grant: Grant) -> None:
        """End a lease."""
        self._must_have_met(1, self.db.execute(COMPLETE, (RESULT, *grant)).rowcount)

    def complete_many(self, grants: Sequence[Grant]) -> None:
        """End leases with one statement."""
        ids, tokens = zip(*grants, strict=True)
        ended = self.db.execute(COMPLETE_MANY, (list(ids), list(tokens), [RESULT] * len(grants))).rowcount
        self._must_have_met(len(grants), ended)

    def renew(self, tokens: Sequence[int]) -> int:
        """Renew leases with one statement; answers how many were still alive."""
        return len(self.db.execute(RENEW, (TTL_MS, tokens)).fetchall())

    def page(self) -> int:
        """Read the first hundred tasks; answers how many there are."""
        return len(self.db.execute(PAGE, (QUEUE,)).fetchall())

    def close(self) -> None:
        """Let go of the database."""
        self.db.close()

    @staticmethod
    def _must_have_met(expected: int, ended: int) -> None:
        if ended != expected:
            raise RuntimeError("the floor lost a lease that nobody else could have taken")
