-- Statements of the PostgreSQL engine: rows that are written under the locks of statements.sql, and rows that are found by
-- whoever looks. Each block says which index keeps it quick.

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

-- name: move_leases
-- index leases_open; time that nobody lived through counts for no cap, and for no silence
UPDATE relet.leases SET claimed_ms = claimed_ms + :leap_ms, beat_ms = least(beat_ms + :leap_ms, :now_ms)
WHERE ended IS NULL AND claimed_ms <= :expected_ms

-- name: move_delays
-- index tasks_due, and of each task the end of its history, which tells when it was delayed; locked in the order of numbers
WITH held AS MATERIALIZED (
    SELECT t.seq FROM relet.tasks t
    WHERE t.delayed AND t.due_ms IS NOT NULL AND :expected_ms >= (
        SELECT e.at_ms FROM relet.events e WHERE e.task_seq = t.seq ORDER BY e.seq DESC LIMIT 1)
    ORDER BY t.seq FOR UPDATE OF t)
UPDATE relet.tasks t SET due_ms = t.due_ms + :leap_ms FROM held h WHERE t.seq = h.seq

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
