"""Stores with many finished tasks, made by a few statements; and a few open ones, made as users make them."""

import psycopg

FINISHED = """
INSERT INTO relet.tasks (
    tenant, id, queue, kind, state, delayed, priority, attempt, failures, losses, streak, token, result,
    created_wall_ms, updated_wall_ms, unsettled, last_event)
SELECT 'default', 'done-' || n, 'q' || n %% 5, 'k', 'done', false, 0, 1, 0, 0, 0, n, '1', 1000 + n, 2000 + n, 0, 0
FROM generate_series(1, %(n)s) n;
INSERT INTO relet.inputs (task_seq, input) SELECT seq, '{"n":1}' FROM relet.tasks;
INSERT INTO relet.leases (
    token, task_seq, tenant, holder, attempt, ttl_ms, max_attempts, max_losses, backoff_base_ms, backoff_cap_ms,
    claimed_ms, claimed_wall_ms, beat_ms, beat_wall_ms, expires_ms, check_ms, cancelling, excused, ended, ended_ms,
    ended_wall_ms)
SELECT token, seq, tenant, 'h', 1, 60000, 5, 3, 1000, 60000, seq, seq, seq, seq, seq + 60000, seq + 60000, false,
    false, 'completed', seq + 5, seq + 5
FROM relet.tasks;
INSERT INTO relet.events (task_seq, kind, state, token, holder, at_ms, wall_ms, detail)
SELECT seq, e.kind, e.state, CASE WHEN e.n > 1 THEN token END, 'h', seq + e.n, seq + e.n, '{}'
FROM relet.tasks, (
    VALUES (1, 'submitted', 'ready'), (2, 'claimed', 'leased'), (3, 'completed', 'done')) e (n, kind, state)
ORDER BY seq, e.n;
INSERT INTO relet.totals (tenant, queue, slot, submitted)
SELECT tenant, queue, 0, count(*) FROM relet.tasks GROUP BY tenant, queue;
SELECT setval('relet.tokens', %(n)s + 1);
"""


def fill(url, n):
    """Finish `n` tasks of five queues, in a store that is there and empty."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in FINISHED.split(";\n"):
            if statement.strip():
                connection.execute(psycopg.ClientCursor(connection).mogrify(statement, {"n": n}))


def open_some(db, n):
    """Submit `n` tasks: most are ready, some held, some delayed, some have failed, one waits."""
    for k in range(n):
        db.submit(f"q{k % 5}", {"k": k}, delay="1h" if k % 10 == 9 else 0)
    for k in range(n // 10):
        db.claim(f"q{k % 5}", ttl="1h")
    for k in range(n // 20):
        db.claim(f"q{k % 5}").fail("no", retry=False)


def settle(url):
    """As autovacuum leaves it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
