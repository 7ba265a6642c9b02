-- Statements of the SQLite engine: its single row, and what is looked at in order to write. Writers run inside BEGIN
-- IMMEDIATE, so whoever reads here to write holds the one write lock of the file; each block says which index keeps it
-- quick. What is written then is in rows.sql.

-- name: read_meta
-- the single row, and the ends of two primary keys; read first in every transaction that writes
SELECT min_writer, epoch, n, mark, (SELECT max(token) FROM leases), (SELECT max(seq) FROM events) FROM meta
WHERE one = 1

-- name: insert_meta
-- once, when the file is made
INSERT INTO meta (
    one, store_id, secret_key, min_reader, min_writer, epoch, n, mark, boot_id, time_namespace, machine_id,
    mono_base_ms, store_base_ms, wall_at_base_ms)
VALUES (
    1, :store_id, :secret_key, :min_reader, :min_writer, 0, 0, 0, :boot_id, :time_namespace, :machine_id, :mono_base_ms, 0,
    :wall_at_base_ms)

-- name: read_min_reader
-- the single row
SELECT min_reader FROM meta WHERE one = 1

-- name: read_identity
-- the single row; read when a store is opened
SELECT store_id, secret_key, boot_id, time_namespace, machine_id, mono_base_ms, store_base_ms FROM meta WHERE one = 1

-- name: count_tables
SELECT count(*) FROM sqlite_schema

-- name: set_tokens
-- once for each block of tokens; those within it are in the register
UPDATE meta SET epoch = :epoch, n = :n, mark = :mark WHERE one = 1

-- name: count_lapses
-- a window of one second of store time, for the whole store
UPDATE meta SET
    lapse_count = CASE WHEN lapse_second = :second THEN lapse_count + :n ELSE :n END,
    lapse_second = :second
WHERE one = 1
RETURNING lapse_count

-- name: lock_task
-- index tasks_id
SELECT t.* FROM tasks t WHERE t.tenant = :tenant AND t.id = :id

-- name: task_by_seq
-- primary key
SELECT t.* FROM tasks t WHERE t.seq = :seq

-- name: lease_by_token
-- primary key
SELECT l.* FROM leases l WHERE l.token = :token

-- name: lock_lease
-- two primary keys
SELECT l.*, t.* FROM leases l JOIN tasks t ON t.seq = l.task_seq WHERE l.token = :token AND l.tenant = :tenant

-- name: lock_holdings
-- two primary keys, once for each token
SELECT l.*, t.* FROM json_each(:tokens) j CROSS JOIN leases l ON l.token = j.value JOIN tasks t ON t.seq = l.task_seq
WHERE l.tenant = :tenant

-- name: look_endings
-- two primary keys, once for each token and in their order. What the rule would do more about than write the end is
-- not answered: what is ended, cancelled, expired, of a task with open effects, or bound to another process
SELECT l.token, l.task_seq, l.holder, t.last_event
FROM json_each(:tokens) j CROSS JOIN leases l ON l.token = j.value CROSS JOIN tasks t ON t.seq = l.task_seq
WHERE l.tenant = :tenant AND l.ended IS NULL AND l.cancelling = 0 AND l.expires_ms > :now_ms
    AND t.state = 'leased' AND t.unsettled = 0
    AND (l.call_id IS NULL OR instr(l.call_id, '~') = 0
        OR substr(l.call_id, 1, instr(l.call_id, '~') - 1) IN (SELECT value FROM json_each(:own_locks)))

-- name: lock_leases
-- primary key, once for each token
SELECT l.* FROM json_each(:tokens) j CROSS JOIN leases l ON l.token = j.value WHERE l.tenant = :tenant

-- name: lock_ready
-- index tasks_ready: larger priority first, then the older one; index leases_exclusive for each that has a key,
-- so that however many wait for a busy key are passed over here, and not one by one in the rule
SELECT i.input, t.* FROM tasks t INDEXED BY tasks_ready CROSS JOIN inputs i ON i.task_seq = t.seq
WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND t.delayed = 0
    AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
    AND (t.exclusive IS NULL OR NOT EXISTS (
        SELECT 1 FROM leases l INDEXED BY leases_exclusive
        WHERE l.tenant = t.tenant AND l.exclusive = t.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL
            AND l.expires_ms > :now_ms))
ORDER BY t.priority DESC, t.seq
LIMIT :limit

-- name: lock_ready_of
-- index tasks_ready, also for the kind; one ordered run per range of priority
SELECT i.input, t.* FROM tasks t INDEXED BY tasks_ready CROSS JOIN inputs i ON i.task_seq = t.seq
WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND t.delayed = 0
    AND t.priority <= :priority AND (t.priority < :priority OR t.seq > :seq)
    AND (:kinds IS NULL OR t.kind IN (SELECT value FROM json_each(:kinds)))
    AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
    AND (t.exclusive IS NULL OR NOT EXISTS (
        SELECT 1 FROM leases l INDEXED BY leases_exclusive
        WHERE l.tenant = t.tenant AND l.exclusive = t.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL
            AND l.expires_ms > :now_ms))
ORDER BY t.priority DESC, t.seq
LIMIT :limit

-- name: look_ahead
-- indexes leases_open, tasks_due, tasks_due_wall, tasks_deadline, and the primary key of queues: five seeks, no rows;
-- then the one task that lock_ready would answer first, by index tasks_ready
SELECT
    EXISTS (SELECT 1 FROM leases l INDEXED BY leases_open WHERE l.ended IS NULL AND l.check_ms <= :now_ms),
    EXISTS (
        SELECT 1 FROM tasks t INDEXED BY tasks_due
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed = 1
            AND t.due_ms IS NOT NULL AND t.due_ms <= :now_ms)
    OR EXISTS (
        SELECT 1 FROM tasks t INDEXED BY tasks_due_wall
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed = 1
            AND t.due_wall_ms IS NOT NULL AND t.due_wall_ms <= :wall_ms),
    EXISTS (
        SELECT 1 FROM tasks t INDEXED BY tasks_deadline
        WHERE t.deadline_wall_ms IS NOT NULL AND t.deadline_wall_ms <= :wall_ms AND t.state = 'ready'),
    q.tenant, q.name, q.paused, q.ttl_ms, q.timeout_ms, q.max_hold_ms, q.max_attempts, q.max_losses, q.retention_ms,
    q.concurrency, q.share_concurrency, q.rate, q.rate_ms, q.shared_from, q.last_share, q.full_us, i.input, t.*
FROM meta LEFT JOIN queues q ON q.tenant = :tenant AND q.name = :queue
LEFT JOIN tasks t ON t.seq = (
    SELECT t.seq FROM tasks t INDEXED BY tasks_ready
    WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND t.delayed = 0
        AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
        AND (t.exclusive IS NULL OR NOT EXISTS (
            SELECT 1 FROM leases l INDEXED BY leases_exclusive
            WHERE l.tenant = t.tenant AND l.exclusive = t.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL
                AND l.expires_ms > :now_ms))
    ORDER BY t.priority DESC, t.seq
    LIMIT 1)
LEFT JOIN inputs i ON i.task_seq = t.seq
WHERE one = 1

-- name: lock_due
-- index tasks_due
SELECT t.* FROM tasks t INDEXED BY tasks_due
WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed = 1 AND t.due_ms IS NOT NULL AND t.due_ms <= :now_ms
ORDER BY t.due_ms LIMIT :limit

-- name: lock_due_wall
-- index tasks_due_wall
SELECT t.* FROM tasks t INDEXED BY tasks_due_wall
WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed = 1
    AND t.due_wall_ms IS NOT NULL AND t.due_wall_ms <= :wall_ms
ORDER BY t.due_wall_ms LIMIT :limit

-- name: lock_overdue
-- index tasks_deadline
SELECT t.* FROM tasks t INDEXED BY tasks_deadline
WHERE t.deadline_wall_ms IS NOT NULL AND t.deadline_wall_ms <= :wall_ms AND t.state = 'ready'
ORDER BY t.deadline_wall_ms LIMIT :limit

-- name: lock_to_check
-- index leases_open: every lease that lapsed is among those whose time to be looked at has come
SELECT l.* FROM leases l INDEXED BY leases_open
WHERE l.ended IS NULL AND l.check_ms <= :now_ms
ORDER BY l.check_ms LIMIT :limit

-- name: lock_exclusive
-- index leases_exclusive
SELECT l.* FROM leases l INDEXED BY leases_exclusive
WHERE l.tenant = :tenant AND l.exclusive = :key AND l.ended IS NULL AND l.exclusive IS NOT NULL

-- name: lock_requested
-- index leases_request
SELECT l.* FROM leases l INDEXED BY leases_request
WHERE l.request_id = :request_id AND l.tenant = :tenant ORDER BY l.token

-- name: lock_called
-- primary key, the newest grants only: asked for when a call is repeated whose outcome was unknown a moment ago
SELECT l.* FROM leases l
WHERE l.token > (SELECT max(token) FROM leases) - 100000 AND l.call_id = :call_id AND l.tenant = :tenant
ORDER BY l.token

-- name: lock_matching
-- primary key, in pages; by an index of the tenant's it would sort all tasks for each page
SELECT t.* FROM tasks t NOT INDEXED
WHERE t.tenant = :tenant AND t.seq > :after
    AND (:queue IS NULL OR t.queue = :queue) AND (:kind IS NULL OR t.kind = :kind)
    AND (:state IS NULL OR t.state = :state)
    AND (:labels IS NULL OR NOT EXISTS (
        SELECT 1 FROM json_each(:labels) j WHERE NOT EXISTS (
            SELECT 1 FROM json_each(t.labels) k WHERE k.key = j.key AND k.value = j.value)))
ORDER BY t.seq LIMIT :limit
