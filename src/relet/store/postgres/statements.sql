-- Statements of the PostgreSQL engine: its single rows, and what is locked in order to write; what is written then is in
-- rows.sql. Whoever reads here to write locks the row of the task first, then that of its lease; who looks for work among
-- many passes over what others have locked. A statement that may have waited for a lock ends with {clock}, which is read
-- when all of its rows are held; {server} is the run of the server that answers; {free} asks whether nobody holds the key
-- of task t, by index leases_exclusive.

-- name: set_terms
-- for this transaction alone; sent first where sessions are a pooler's, or where its caller has little patience
SELECT
    set_config('synchronous_commit', CASE
        WHEN :commit::text = 'on' AND current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply'
        ELSE :commit END, true),
    set_config('lock_timeout', coalesce(:lock_timeout, current_setting('lock_timeout')), true)

-- name: begin_meta
-- the two single rows; read first in every transaction that writes
SELECT m.min_writer, m.epoch, m.ahead_ms, m.steps, r.server IS NOT DISTINCT FROM {server}, {clock}
FROM relet.meta m LEFT JOIN relet.run r ON r.one = m.one WHERE m.one = 1

-- name: begin_to_read
-- the single row
SELECT m.min_reader, m.epoch, m.ahead_ms, m.steps, true, {clock} FROM relet.meta m WHERE m.one = 1

-- name: read_clock
SELECT {clock}

-- name: read_version
-- the single row
SELECT m.version, m.min_reader FROM relet.meta m WHERE m.one = 1

-- name: read_identity
-- the single row; read when a store is opened
SELECT m.store_id, m.secret_key, m.ahead_ms, m.steps, {clock} FROM relet.meta m WHERE m.one = 1

-- name: insert_meta
-- once, when the tables are made
INSERT INTO relet.meta (one, version, store_id, secret_key, min_reader, min_writer, epoch, ahead_ms, steps)
VALUES (1, :version, :store_id, :secret_key, :min_reader, :min_writer, :epoch, 0, 0)

-- name: lock_all_out
-- every transaction of a client reads this table first: none is open while it is held, and none has read what it was
LOCK TABLE relet.meta IN ACCESS EXCLUSIVE MODE

-- name: lock_meta
-- the single row, locked: outages are settled one at a time
SELECT m.epoch, m.ahead_ms, m.steps, r.server IS NOT DISTINCT FROM {server}, {server}, {clock}
FROM relet.meta m LEFT JOIN relet.run r ON r.one = m.one WHERE m.one = 1 FOR UPDATE OF m

-- name: settle_meta
-- the single row
UPDATE relet.meta SET epoch = :epoch, ahead_ms = :ahead_ms, steps = :steps WHERE one = 1

-- name: settle_run
-- the single row
INSERT INTO relet.run (one, server) VALUES (1, :server) ON CONFLICT (one) DO UPDATE SET server = excluded.server

-- name: restart_tokens
-- never backwards: grants may be under way
SELECT setval('relet.tokens', greatest(:n, (SELECT last_value FROM relet.tokens)))

-- name: next_token
SELECT nextval('relet.tokens')

-- name: count_lapses
-- index lapses_second; a window of one second of store time, for the whole store. Added to, so that nobody waits
WITH added AS (INSERT INTO relet.lapses (second, n) VALUES (:second, :n) RETURNING n)
SELECT (coalesce((SELECT sum(n) FROM relet.lapses WHERE second = :second), 0) + (SELECT sum(n) FROM added))::bigint

-- name: forget_lapses
-- index lapses_second; a few at a time, and without waiting for another that does it
DELETE FROM relet.lapses WHERE seq IN (
    SELECT seq FROM relet.lapses WHERE second < :second ORDER BY second LIMIT 1000 FOR UPDATE SKIP LOCKED)

-- name: lock_task
-- index tasks_id
WITH held AS MATERIALIZED (
    SELECT t.* FROM relet.tasks t WHERE t.tenant = :tenant AND t.id = :id FOR UPDATE)
SELECT held.*, {clock} FROM held

-- name: task_by_seq
-- primary key
WITH held AS MATERIALIZED (SELECT t.* FROM relet.tasks t WHERE t.seq = :seq FOR UPDATE)
SELECT held.*, {clock} FROM held

-- name: lease_by_token
-- primary key
SELECT l.* FROM relet.leases l WHERE l.token = :token

-- name: lock_lease_of
-- primary key, under the lock of its task: no renewal comes between the look and what is made of it
WITH held AS MATERIALIZED (SELECT l.* FROM relet.leases l WHERE l.token = :token FOR UPDATE)
SELECT held.*, {clock} FROM held

-- name: lock_lease
-- two primary keys; the task first, then the lease
WITH held AS MATERIALIZED (
    SELECT l.*, t.* FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.token = :token AND l.tenant = :tenant FOR UPDATE OF t, l)
SELECT held.*, {clock} FROM held

-- name: lock_holdings
-- two primary keys, once for each token, in the order of their tasks
WITH held AS MATERIALIZED (
    SELECT l.*, t.* FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.token = ANY (ARRAY(SELECT jsonb_array_elements_text(:tokens::jsonb)::bigint)) AND l.tenant = :tenant
    ORDER BY t.seq, l.token FOR UPDATE OF t, l)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held

-- name: lock_leases
-- two primary keys, once for each token, in the order of their tasks
WITH held AS MATERIALIZED (
    SELECT l.* FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.token = ANY (ARRAY(SELECT jsonb_array_elements_text(:tokens::jsonb)::bigint)) AND l.tenant = :tenant
    ORDER BY t.seq, l.token FOR UPDATE OF t, l)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held

-- name: lock_free_leases
-- as above, but for those that somebody else has locked just now
WITH held AS MATERIALIZED (
    SELECT l.token FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.token = ANY (ARRAY(SELECT jsonb_array_elements_text(:tokens::jsonb)::bigint)) AND l.tenant = :tenant
    ORDER BY t.seq, l.token FOR UPDATE OF t, l SKIP LOCKED)
SELECT held.token, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held

-- name: find_leases
-- primary key, once for each token
SELECT l.token FROM relet.leases l
WHERE l.token = ANY (ARRAY(SELECT jsonb_array_elements_text(:tokens::jsonb)::bigint)) AND l.tenant = :tenant

-- name: lock_ready
-- index tasks_ready: larger priority first, then the older one; index leases_exclusive for each that has a key,
-- so that however many wait for a busy key are passed over here, and not one by one in the rule. Tokens are drawn
-- when all of the tasks are held
WITH picked AS MATERIALIZED (
    SELECT t.* FROM relet.tasks t
    WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND NOT t.delayed
        AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
        AND {free}
    ORDER BY t.priority DESC, t.seq
    LIMIT :limit FOR UPDATE OF t SKIP LOCKED)
SELECT i.input, p.*, nextval('relet.tokens'), {clock}
FROM (SELECT count(*) FROM picked) counted CROSS JOIN picked p JOIN relet.inputs i ON i.task_seq = p.seq
ORDER BY p.priority DESC, p.seq

-- name: lock_ready_of
-- index tasks_ready, also for the kind; one ordered run per range of priority
WITH picked AS MATERIALIZED (
    SELECT t.* FROM relet.tasks t
    WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND NOT t.delayed
        AND t.priority <= :priority AND (t.priority < :priority OR t.seq > :seq)
        AND (:kinds::text IS NULL OR t.kind = ANY (ARRAY(SELECT jsonb_array_elements_text(:kinds::jsonb))))
        AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
        AND {free}
    ORDER BY t.priority DESC, t.seq
    LIMIT :limit FOR UPDATE OF t SKIP LOCKED)
SELECT i.input, p.*, nextval('relet.tokens'), {clock}
FROM (SELECT count(*) FROM picked) counted CROSS JOIN picked p JOIN relet.inputs i ON i.task_seq = p.seq
ORDER BY p.priority DESC, p.seq

-- name: look_ahead
-- indexes leases_open, tasks_due, tasks_due_wall, tasks_deadline, and the primary key of queues: five seeks, no rows;
-- then the one task that lock_ready would answer first, by index tasks_ready, locked
WITH first AS MATERIALIZED (
    SELECT t.* FROM relet.tasks t
    WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND NOT t.delayed
        AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
        AND {free}
    ORDER BY t.priority DESC, t.seq
    LIMIT 1 FOR UPDATE OF t SKIP LOCKED)
SELECT
    EXISTS (SELECT 1 FROM relet.leases l WHERE l.ended IS NULL AND l.check_ms <= :now_ms),
    EXISTS (
        SELECT 1 FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed AND t.due_ms IS NOT NULL AND t.due_ms <= :now_ms)
    OR EXISTS (
        SELECT 1 FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed
            AND t.due_wall_ms IS NOT NULL AND t.due_wall_ms <= :wall_ms),
    EXISTS (
        SELECT 1 FROM relet.tasks t
        WHERE t.deadline_wall_ms IS NOT NULL AND t.deadline_wall_ms <= :wall_ms AND t.state = 'ready'),
    q.tenant, q.name, q.paused, q.ttl_ms, q.timeout_ms, q.max_hold_ms, q.max_attempts, q.max_losses, q.retention_ms,
    q.concurrency, q.share_concurrency, q.rate, q.rate_ms, q.shared_from, q.last_share, q.full_us, i.input, f.*,
    CASE WHEN f.seq IS NOT NULL THEN nextval('relet.tokens') END, {clock}
FROM relet.meta m
LEFT JOIN relet.queues q ON q.tenant = :tenant AND q.name = :queue
LEFT JOIN first f ON true LEFT JOIN relet.inputs i ON i.task_seq = f.seq
WHERE m.one = 1

-- name: lock_queue
-- primary key; claims of a queue with shares or limits come one after the other
SELECT q.tenant, q.name FROM relet.queues q WHERE q.tenant = :tenant AND q.name = :queue FOR UPDATE

-- name: make_queue
-- primary key (tenant, name): a row to lock, for a queue that had no knobs
INSERT INTO relet.queues (tenant, name, paused) VALUES (:tenant, :queue, false) ON CONFLICT DO NOTHING

-- name: lock_due
-- index tasks_due
WITH held AS MATERIALIZED (
    SELECT t.* FROM relet.tasks t
    WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed AND t.due_ms IS NOT NULL AND t.due_ms <= :now_ms
    ORDER BY t.due_ms LIMIT :limit FOR UPDATE OF t SKIP LOCKED)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.due_ms

-- name: lock_due_wall
-- index tasks_due_wall
WITH held AS MATERIALIZED (
    SELECT t.* FROM relet.tasks t
    WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed
        AND t.due_wall_ms IS NOT NULL AND t.due_wall_ms <= :wall_ms
    ORDER BY t.due_wall_ms LIMIT :limit FOR UPDATE OF t SKIP LOCKED)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.due_wall_ms

-- name: lock_overdue
-- index tasks_deadline
WITH held AS MATERIALIZED (
    SELECT t.* FROM relet.tasks t
    WHERE t.deadline_wall_ms IS NOT NULL AND t.deadline_wall_ms <= :wall_ms AND t.state = 'ready'
    ORDER BY t.deadline_wall_ms LIMIT :limit FOR UPDATE OF t SKIP LOCKED)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.deadline_wall_ms

-- name: lock_to_check
-- index leases_open: every lease that lapsed is among those whose time to be looked at has come; its task is locked
-- before it
WITH held AS MATERIALIZED (
    SELECT l.* FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.ended IS NULL AND l.check_ms <= :now_ms
    ORDER BY l.check_ms LIMIT :limit FOR UPDATE OF t, l SKIP LOCKED)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.check_ms

-- name: make_key
-- primary key (tenant, name)
INSERT INTO relet.keys (tenant, name) VALUES (:tenant, :key) ON CONFLICT DO NOTHING

-- name: lock_key
-- primary key (tenant, name); whoever finds it locked takes it for busy
WITH held AS MATERIALIZED (
    SELECT k.name FROM relet.keys k WHERE k.tenant = :tenant AND k.name = :key FOR UPDATE SKIP LOCKED)
SELECT held.name, {clock} FROM held

-- name: forget_keys
-- the whole of a small table, and index leases_exclusive for each: what nobody holds now is made anew when it is wanted.
-- One that is locked just now is passed over
DELETE FROM relet.keys k USING (
    SELECT f.tenant, f.name FROM relet.keys f
    WHERE NOT EXISTS (
        SELECT 1 FROM relet.leases l
        WHERE l.tenant = f.tenant AND l.exclusive = f.name AND l.exclusive IS NOT NULL AND l.ended IS NULL)
    LIMIT 1000 FOR UPDATE SKIP LOCKED) g
WHERE k.tenant = g.tenant AND k.name = g.name

-- name: hold_request
-- primary key (tenant, id), index requests_second; waits for whoever makes the same request, and what is looked for behind it
-- sees what that one was granted
INSERT INTO relet.requests (tenant, id, second) VALUES (:tenant, :id, :second)
ON CONFLICT (tenant, id) DO UPDATE SET second = excluded.second

-- name: forget_requests
-- index requests_second; a few at a time: whoever made them has ended long ago, and what was granted tells of the rest
DELETE FROM relet.requests r USING (
    SELECT f.tenant, f.id FROM relet.requests f WHERE f.second < :second
    ORDER BY f.second LIMIT 1000 FOR UPDATE SKIP LOCKED) g
WHERE r.tenant = g.tenant AND r.id = g.id

-- name: find_takers
-- no table: transactions that have locked tasks, or begun to, each by its own number; they let go of it once all can see
-- what they wrote
SELECT DISTINCT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND relation = 'relet.tasks'::regclass AND granted
    AND (mode = 'RowShareLock' OR mode = 'RowExclusiveLock')
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()

-- name: pause
SELECT pg_sleep(:seconds)

-- name: lock_exclusive
-- index leases_exclusive, under the lock of the key
SELECT l.* FROM relet.leases l
WHERE l.tenant = :tenant AND l.exclusive = :key AND l.ended IS NULL AND l.exclusive IS NOT NULL

-- name: lock_requested
-- index leases_request, then primary keys in the order of the tasks
WITH held AS MATERIALIZED (
    SELECT l.* FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.request_id = :request_id AND l.tenant = :tenant ORDER BY t.seq FOR UPDATE OF t, l)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.token

-- name: lock_called
-- primary key, the newest grants only: asked for when a call is repeated whose outcome was unknown a moment ago. Counted,
-- not subtracted: with the server gone meanwhile, tokens have made a leap
WITH held AS MATERIALIZED (
    SELECT l.* FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.token >= (
        SELECT min(newest.token) FROM (SELECT token FROM relet.leases ORDER BY token DESC LIMIT 100000) newest)
        AND l.call_id = :call_id AND l.tenant = :tenant
    ORDER BY t.seq FOR UPDATE OF t, l)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.token

-- name: lock_matching
-- primary key, in pages and in the order of tasks
WITH held AS MATERIALIZED (
    SELECT t.* FROM relet.tasks t
    WHERE t.tenant = :tenant AND t.seq > :after
        AND (:queue::text IS NULL OR t.queue = :queue) AND (:kind::text IS NULL OR t.kind = :kind)
        AND (:state::text IS NULL OR t.state = :state)
        AND (:labels::text IS NULL OR coalesce(t.labels, '{}')::jsonb @> :labels::jsonb)
    ORDER BY t.seq LIMIT :limit FOR UPDATE OF t)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.seq
