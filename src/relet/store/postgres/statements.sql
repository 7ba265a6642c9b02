-- Every statement of the PostgreSQL engine. Whoever reads here to write locks the row of the task first, then that of its
-- lease; who looks for work among many passes over what others have locked. A statement that may have waited for a lock
-- ends with {clock}, which is read when all of its rows are held; {server} is the run of the server that answers.

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
        AND (t.exclusive IS NULL OR NOT EXISTS (
            SELECT 1 FROM relet.leases l
            WHERE l.tenant = t.tenant AND l.exclusive = t.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL
                AND l.expires_ms > :now_ms))
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
        AND (t.exclusive IS NULL OR NOT EXISTS (
            SELECT 1 FROM relet.leases l
            WHERE l.tenant = t.tenant AND l.exclusive = t.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL
                AND l.expires_ms > :now_ms))
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
        AND (t.exclusive IS NULL OR NOT EXISTS (
            SELECT 1 FROM relet.leases l
            WHERE l.tenant = t.tenant AND l.exclusive = t.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL
                AND l.expires_ms > :now_ms))
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

-- name: insert_task
-- primary key of tombstones: an id that was pruned gets no second life; primary key of queues: where there are shares, a
-- task without one gets the mark of those
INSERT INTO relet.tasks (
    tenant, id, queue, kind, state, delayed, due_ms, due_wall_ms, priority, attempt, failures, losses, streak, token,
    cancel_reason, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses, deadline_wall_ms, exclusive, share,
    labels, progress, error, code, reason, result, created_wall_ms, updated_wall_ms, waiting_for, wait_seq, unsettled,
    last_event)
SELECT
    :tenant, :id, :queue, :kind, :state, :delayed, :due_ms, :due_wall_ms, :priority, :attempt, :failures, :losses,
    :streak, :token, :cancel_reason, :ttl_ms, :timeout_ms, :max_hold_ms, :max_attempts, :max_losses,
    :deadline_wall_ms, :exclusive,
    coalesce(:share, (
        SELECT chr(1) FROM relet.queues q WHERE q.tenant = :tenant AND q.name = :queue AND q.shared_from IS NOT NULL)),
    :labels, :progress, :error, :code, :reason, :result, :created_wall_ms,
    :updated_wall_ms, :waiting_for, :wait_seq, :unsettled, :last_event
WHERE NOT EXISTS (SELECT 1 FROM relet.tombstones g WHERE g.tenant = :tenant AND g.id = :id)
RETURNING seq

-- name: insert_input
INSERT INTO relet.inputs (task_seq, input) VALUES (:seq, :input)

-- name: update_task
-- primary key; what a submit fixed for good is not written again
UPDATE relet.tasks SET
    state = :state, delayed = :delayed, due_ms = :due_ms, due_wall_ms = :due_wall_ms, attempt = :attempt,
    failures = :failures, losses = :losses, streak = :streak, token = :token, cancel_reason = :cancel_reason,
    deadline_wall_ms = :deadline_wall_ms, progress = :progress, error = :error, code = :code, reason = :reason,
    result = :result, updated_wall_ms = :updated_wall_ms, waiting_for = :waiting_for, wait_seq = :wait_seq,
    unsettled = :unsettled
WHERE seq = :seq

-- name: take_task
-- primary key; what a grant changes of a task that was ready and due
UPDATE relet.tasks SET state = :state, token = :token, updated_wall_ms = :updated_wall_ms WHERE seq = :seq

-- name: complete_task
-- primary key; what a completion changes of a task that was held
UPDATE relet.tasks SET
    state = :state, error = :error, code = :code, reason = :reason, result = :result,
    updated_wall_ms = :updated_wall_ms
WHERE seq = :seq

-- name: insert_lease
INSERT INTO relet.leases VALUES (
    :token, :task_seq, :tenant, :holder, :attempt, :ttl_ms, :timeout_ms, :max_hold_ms, :max_attempts, :max_losses,
    :backoff_base_ms, :backoff_cap_ms, :exclusive, :claimed_ms, :claimed_wall_ms, :beat_ms, :beat_wall_ms,
    :expires_ms, :check_ms, :cancelling, :excused, :call_id, :request_id, :request_digest, :took_over, :ended,
    :ended_ms, :ended_wall_ms, :end_digest, :end_answer)

-- name: extend_lease
-- primary key; touches no index
UPDATE relet.leases SET expires_ms = :expires_ms, beat_ms = :beat_ms, beat_wall_ms = :beat_wall_ms, excused = false
WHERE token = :token

-- name: note_late_beat
-- primary key; only for a renewal that came with less than half of the ttl left
INSERT INTO relet.late_beats AS b (token, n, least_left_ms) VALUES (:token, 1, :left_ms)
ON CONFLICT (token) DO UPDATE SET n = b.n + 1, least_left_ms = least(b.least_left_ms, excluded.least_left_ms)

-- name: extend_leases
-- primary key, once for each token, in their order; touches no index. What somebody has locked is passed over, and so is
-- what is ended, cancelled, expired, late or about to reach its cap: those are judged one by one
WITH held AS MATERIALIZED (
    SELECT l.token FROM relet.leases l
    WHERE l.token = ANY (ARRAY(SELECT jsonb_array_elements_text(:tokens::jsonb)::bigint)) AND l.tenant = :tenant
    ORDER BY l.token FOR UPDATE OF l SKIP LOCKED),
clock AS MATERIALIZED (SELECT {now_ms} AS now_ms, {wall_ms} AS wall_ms FROM (SELECT count(*) FROM held) counted)
UPDATE relet.leases l SET
    expires_ms = greatest(l.expires_ms, c.now_ms + coalesce(:ttl_ms, l.ttl_ms)), beat_ms = c.now_ms,
    beat_wall_ms = c.wall_ms, excused = false
FROM held h, clock c
WHERE l.token = h.token AND l.ended IS NULL AND NOT l.cancelling
    AND l.expires_ms > c.now_ms AND l.expires_ms - c.now_ms >= l.ttl_ms * :late_share::double precision
    AND (l.max_hold_ms IS NULL
        OR greatest(l.expires_ms, c.now_ms + coalesce(:ttl_ms, l.ttl_ms)) < l.claimed_ms + l.max_hold_ms)
RETURNING l.token, l.expires_ms - c.now_ms

-- name: postpone_check
-- primary key, and one move in leases_open for each ttl at most
UPDATE relet.leases SET check_ms = :check_ms WHERE token = :token

-- name: end_lease
-- primary key
UPDATE relet.leases SET
    ended = :ended, ended_ms = :ended_ms, ended_wall_ms = :ended_wall_ms, end_digest = :end_digest,
    end_answer = :end_answer
WHERE token = :token AND ended IS NULL

-- name: mark_cancelling
-- primary key
UPDATE relet.leases SET cancelling = true WHERE token = :token

-- name: put_checkpoint
-- primary key (task_seq, name, version)
INSERT INTO relet.checkpoints (task_seq, name, version, token, wall_ms, value)
SELECT :task_seq, :name, coalesce(max(version), 0) + 1, :token, :wall_ms, :value
FROM relet.checkpoints WHERE task_seq = :task_seq AND name = :name
RETURNING version

-- name: trim_checkpoints
-- primary key (task_seq, name, version); in the transaction that saved the newest, which therefore always stays
DELETE FROM relet.checkpoints WHERE task_seq = :task_seq AND name = :name AND version <= :version - :kept

-- name: put_queue
-- primary key (tenant, name); not the state of turns, which claims write
INSERT INTO relet.queues (
    tenant, name, paused, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses, retention_ms, concurrency,
    share_concurrency, rate, rate_ms)
VALUES (
    :tenant, :name, :paused, :ttl_ms, :timeout_ms, :max_hold_ms, :max_attempts, :max_losses, :retention_ms,
    :concurrency, :share_concurrency, :rate, :rate_ms)
ON CONFLICT (tenant, name) DO UPDATE SET
    paused = excluded.paused, ttl_ms = excluded.ttl_ms, timeout_ms = excluded.timeout_ms,
    max_hold_ms = excluded.max_hold_ms, max_attempts = excluded.max_attempts, max_losses = excluded.max_losses,
    retention_ms = excluded.retention_ms, concurrency = excluded.concurrency,
    share_concurrency = excluded.share_concurrency, rate = excluded.rate, rate_ms = excluded.rate_ms

-- name: add_event
-- primary key, whose number is drawn here; index events_task
INSERT INTO relet.events (task_seq, kind, state, token, holder, at_ms, wall_ms, detail)
VALUES (:task_seq, :kind, :state, :token, :holder, :at_ms, :wall_ms, :detail)

-- name: add_totals
-- primary key (tenant, queue, slot), in its order, and last in a transaction: nobody waits for another's tasks meanwhile
INSERT INTO relet.totals AS o (tenant, queue, slot, submitted, takeovers)
SELECT a.tenant, a.queue, pg_backend_pid() % 16, sum(a.submitted), sum(a.takeovers)
FROM (
    SELECT j ->> 0 AS tenant, j ->> 1 AS queue, (j ->> 2)::bigint AS submitted, 0 AS takeovers
    FROM jsonb_array_elements(:submitted::jsonb) j
    UNION ALL
    SELECT t.tenant, t.queue, 0, 1
    FROM jsonb_array_elements_text(:taken_over::jsonb) s JOIN relet.tasks t ON t.seq = s::bigint) a
GROUP BY a.tenant, a.queue ORDER BY a.tenant, a.queue
ON CONFLICT (tenant, queue, slot) DO UPDATE SET
    submitted = o.submitted + excluded.submitted, takeovers = o.takeovers + excluded.takeovers

-- name: find_task
-- index tasks_id, then primary keys
SELECT i.input, l.holder, l.claimed_wall_ms, l.beat_wall_ms, l.beat_ms, l.expires_ms, l.ttl_ms, t.*
FROM relet.tasks t JOIN relet.inputs i ON i.task_seq = t.seq LEFT JOIN relet.leases l ON l.token = t.token
WHERE t.tenant = :tenant AND t.id = :id

-- name: find_tasks
-- primary key, from a sequence number on
SELECT i.input, l.holder, l.claimed_wall_ms, l.beat_wall_ms, l.beat_ms, l.expires_ms, l.ttl_ms, t.*
FROM relet.tasks t JOIN relet.inputs i ON i.task_seq = t.seq LEFT JOIN relet.leases l ON l.token = t.token
WHERE t.tenant = :tenant AND t.seq > :after
    AND (:queue::text IS NULL OR t.queue = :queue) AND (:kind::text IS NULL OR t.kind = :kind)
    AND (:state::text IS NULL OR t.state = :state)
    AND (:labels::text IS NULL OR coalesce(t.labels, '{}')::jsonb @> :labels::jsonb)
ORDER BY t.seq LIMIT :limit

-- name: count_ready_few
-- indexes tasks_ready, tasks_due and tasks_due_wall, and no further than the limit
SELECT count(*) FROM (
    SELECT 1 FROM relet.tasks WHERE tenant = :tenant AND state = 'ready' AND NOT delayed
    UNION ALL
    SELECT 1 FROM relet.tasks WHERE tenant = :tenant AND delayed AND due_ms IS NOT NULL
    UNION ALL
    SELECT 1 FROM relet.tasks WHERE tenant = :tenant AND delayed AND due_wall_ms IS NOT NULL
    LIMIT :limit) few

-- name: find_tasks_ready
-- indexes tasks_ready, tasks_due and tasks_due_wall, sorted: where few are ready, however many have finished
WITH ready AS MATERIALIZED (
    SELECT seq FROM relet.tasks WHERE tenant = :tenant AND state = 'ready' AND NOT delayed
    UNION ALL
    SELECT seq FROM relet.tasks WHERE tenant = :tenant AND delayed AND due_ms IS NOT NULL
    UNION ALL
    SELECT seq FROM relet.tasks WHERE tenant = :tenant AND delayed AND due_wall_ms IS NOT NULL)
SELECT i.input, l.holder, l.claimed_wall_ms, l.beat_wall_ms, l.beat_ms, l.expires_ms, l.ttl_ms, t.*
FROM ready s
JOIN relet.tasks t ON t.seq = s.seq JOIN relet.inputs i ON i.task_seq = t.seq
LEFT JOIN relet.leases l ON l.token = t.token
WHERE t.seq > :after
    AND (:queue::text IS NULL OR t.queue = :queue) AND (:kind::text IS NULL OR t.kind = :kind) AND t.state = :state
    AND (:labels::text IS NULL OR coalesce(t.labels, '{}')::jsonb @> :labels::jsonb)
ORDER BY t.seq LIMIT :limit

-- name: find_tasks_leased
-- index leases_open: the few that are held, however many have finished
WITH held AS MATERIALIZED (SELECT * FROM relet.leases WHERE ended IS NULL)
SELECT i.input, l.holder, l.claimed_wall_ms, l.beat_wall_ms, l.beat_ms, l.expires_ms, l.ttl_ms, t.*
FROM held l JOIN relet.tasks t ON t.seq = l.task_seq JOIN relet.inputs i ON i.task_seq = t.seq
WHERE t.tenant = :tenant AND t.seq > :after
    AND (:queue::text IS NULL OR t.queue = :queue) AND (:kind::text IS NULL OR t.kind = :kind) AND t.state = :state
    AND (:labels::text IS NULL OR coalesce(t.labels, '{}')::jsonb @> :labels::jsonb)
ORDER BY t.seq LIMIT :limit

-- name: find_tasks_set_aside
-- index tasks_set_aside: dead letters and waits, however many have finished
SELECT i.input, l.holder, l.claimed_wall_ms, l.beat_wall_ms, l.beat_ms, l.expires_ms, l.ttl_ms, t.*
FROM relet.tasks t JOIN relet.inputs i ON i.task_seq = t.seq LEFT JOIN relet.leases l ON l.token = t.token
WHERE t.tenant = :tenant AND t.state = :state
    AND (t.state = 'waiting' OR t.state = 'failed' OR t.state = 'cancelled') AND t.seq > :after
    AND (:queue::text IS NULL OR t.queue = :queue) AND (:kind::text IS NULL OR t.kind = :kind)
    AND (:labels::text IS NULL OR coalesce(t.labels, '{}')::jsonb @> :labels::jsonb)
ORDER BY t.seq LIMIT :limit

-- name: find_input
-- primary key
SELECT input FROM relet.inputs WHERE task_seq = :seq

-- name: find_checkpoint
-- primary key (task_seq, name, version), backwards
SELECT value FROM relet.checkpoints WHERE task_seq = :task_seq AND name = :name ORDER BY version DESC LIMIT 1

-- name: find_queue
-- primary key (tenant, name)
SELECT tenant, name, paused, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses, retention_ms, concurrency,
    share_concurrency, rate, rate_ms, shared_from, last_share, full_us
FROM relet.queues WHERE tenant = :tenant AND name = :name

-- name: find_task_events
-- index tasks_id, then events_task
SELECT e.seq, t.id, t.queue, e.kind, e.state, e.token, e.holder, e.wall_ms, e.detail
FROM relet.tasks t JOIN relet.events e ON e.task_seq = t.seq
WHERE t.tenant = :tenant AND t.id = :id AND e.seq > :after
ORDER BY e.seq LIMIT :limit

-- name: find_events
-- primary key; an event of the whole store, such as an outage, has no task and concerns everybody
SELECT e.seq, t.id, t.queue, e.kind, e.state, e.token, e.holder, e.wall_ms, e.detail
FROM relet.events e LEFT JOIN relet.tasks t ON t.seq = e.task_seq
WHERE e.seq > :after AND (e.task_seq IS NULL OR (t.tenant = :tenant AND (:queue::text IS NULL OR t.queue = :queue)))
ORDER BY e.seq LIMIT :limit

-- name: find_gap
-- primary key, its last part: the first event of late before which a number is missing that may still be committed, and the
-- one before that
SELECT g.seq, g.seq - g.apart FROM (
    SELECT e.seq, e.at_ms, e.seq - lag(e.seq, 1, :after) OVER (ORDER BY e.seq) AS apart
    FROM relet.events e WHERE e.seq > greatest(:after, :upto - 100000) AND e.seq <= :upto) g
WHERE g.apart > 1 AND g.at_ms > :now_ms - :patience_ms
ORDER BY g.seq LIMIT 1

-- name: are_events_coming
-- is anybody else within a transaction that adds events, or has prepared one, which no session has. A standby knows nothing
-- of those of its primary
SELECT EXISTS (
    SELECT 1 FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'relet.events'::regclass AND mode = 'RowExclusiveLock' AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND pid IS DISTINCT FROM pg_backend_pid()) OR pg_is_in_recovery()

-- name: newest_event
-- primary key, its end
SELECT seq, task_seq FROM relet.events ORDER BY seq DESC LIMIT 1

-- name: last_event
-- primary key
SELECT coalesce(max(seq), 0) FROM relet.events

-- name: last_reading
-- the largest past reading of store time that was committed of late; never a deadline
SELECT greatest(
    coalesce((SELECT at_ms FROM relet.events ORDER BY seq DESC LIMIT 1), 0),
    coalesce((SELECT max(beat_ms) FROM relet.leases WHERE ended IS NULL), 0))

-- name: extend_all_open
-- index leases_open; the outage rule, the one exception to strict expiry
UPDATE relet.leases SET
    expires_ms = greatest(expires_ms, :now_ms + ttl_ms), check_ms = greatest(check_ms, :now_ms + ttl_ms),
    excused = true
WHERE ended IS NULL

-- name: forget_result
-- index rejections_task; only the newest refused result of a token is kept
UPDATE relet.rejections SET result = NULL WHERE task_seq = :task_seq AND token = :token AND result IS NOT NULL

-- name: trim_rejections
-- primary key
DELETE FROM relet.rejections WHERE seq <= (SELECT max(seq) FROM relet.rejections) - :kept

-- name: count_rejection
-- primary key (tenant, reason); written last, so that nobody is waited for with it locked
INSERT INTO relet.rejection_counts AS c (tenant, reason, n) VALUES (:tenant, :reason, :n)
ON CONFLICT (tenant, reason) DO UPDATE SET n = c.n + excluded.n

-- name: find_rejections
-- primary key, newest first
SELECT seq, task_id, verb, holder, token, current_token, reason, late_ms, wall_ms, result FROM relet.rejections
WHERE tenant = :tenant AND (:task_id::text IS NULL OR task_id = :task_id) AND (:before::bigint IS NULL OR seq < :before)
ORDER BY seq DESC LIMIT :limit
