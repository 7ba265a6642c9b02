-- Statements of the SQLite engine: rows that are written under its one write lock, see statements.sql, and rows that are
-- found by whoever looks. Each block says which index keeps it quick.

-- name: insert_task
-- primary key of tombstones: an id that was pruned gets no second life
INSERT INTO tasks (
    tenant, id, queue, kind, state, delayed, due_ms, due_wall_ms, priority, attempt, failures, losses, streak, token,
    cancel_reason, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses, deadline_wall_ms, exclusive, share,
    labels, progress, error, code, reason, result, created_wall_ms, updated_wall_ms, waiting_for, wait_seq, unsettled,
    last_event)
SELECT
    :tenant, :id, :queue, :kind, :state, :delayed, :due_ms, :due_wall_ms, :priority, :attempt, :failures, :losses,
    :streak, :token, :cancel_reason, :ttl_ms, :timeout_ms, :max_hold_ms, :max_attempts, :max_losses,
    :deadline_wall_ms, :exclusive, :share, :labels, :progress, :error, :code, :reason, :result, :created_wall_ms,
    :updated_wall_ms, :waiting_for, :wait_seq, :unsettled, :last_event
WHERE NOT EXISTS (SELECT 1 FROM tombstones g WHERE g.tenant = :tenant AND g.id = :id)
RETURNING seq

-- name: insert_input
INSERT INTO inputs (task_seq, input) VALUES (:seq, :input)

-- name: update_task
-- primary key; what a submit fixed for good is not written again
UPDATE tasks SET
    state = :state, delayed = :delayed, due_ms = :due_ms, due_wall_ms = :due_wall_ms, attempt = :attempt,
    failures = :failures, losses = :losses, streak = :streak, token = :token, cancel_reason = :cancel_reason,
    deadline_wall_ms = :deadline_wall_ms, progress = :progress, error = :error, code = :code, reason = :reason,
    result = :result, updated_wall_ms = :updated_wall_ms, waiting_for = :waiting_for, wait_seq = :wait_seq,
    unsettled = :unsettled, last_event = :last_event
WHERE seq = :seq

-- name: take_task
-- primary key; what a grant changes of a task that was ready and due
UPDATE tasks SET state = :state, token = :token, updated_wall_ms = :updated_wall_ms, last_event = :last_event
WHERE seq = :seq

-- name: complete_task
-- primary key; what a completion changes of a task that was held
UPDATE tasks SET
    state = :state, error = :error, code = :code, reason = :reason, result = :result,
    updated_wall_ms = :updated_wall_ms, last_event = :last_event
WHERE seq = :seq

-- name: link_event
-- primary key; for an event that was added after its task was written
UPDATE tasks SET last_event = :last_event WHERE seq = :seq

-- name: insert_lease
INSERT INTO leases VALUES (
    :token, :task_seq, :tenant, :holder, :attempt, :ttl_ms, :timeout_ms, :max_hold_ms, :max_attempts, :max_losses,
    :backoff_base_ms, :backoff_cap_ms, :exclusive, :claimed_ms, :claimed_wall_ms, :beat_ms, :beat_wall_ms,
    :expires_ms, :check_ms, :cancelling, :excused, :call_id, :request_id, :request_digest, :took_over, :ended, :ended_ms, :ended_wall_ms,
    :end_digest, :end_answer)

-- name: extend_lease
-- primary key; touches no index
UPDATE leases SET expires_ms = :expires_ms, beat_ms = :beat_ms, beat_wall_ms = :beat_wall_ms, excused = 0
WHERE token = :token

-- name: note_late_beat
-- primary key; only for a renewal that came with less than half of the ttl left
INSERT INTO late_beats (token, n, least_left_ms) VALUES (:token, 1, :left_ms)
ON CONFLICT (token) DO UPDATE SET n = n + 1, least_left_ms = min(least_left_ms, excluded.least_left_ms)

-- name: extend_leases
-- primary key, once for each token; touches no index. What is ended, cancelled, expired or about to reach its cap is
-- not answered, and judged one by one; so is a late beat, which is noted, and a lease that is bound to
-- another process
UPDATE leases SET
    expires_ms = max(expires_ms, :now_ms + coalesce(:ttl_ms, ttl_ms)), beat_ms = :now_ms, beat_wall_ms = :wall_ms,
    excused = 0
WHERE token IN (SELECT value FROM json_each(:tokens)) AND tenant = :tenant AND ended IS NULL AND cancelling = 0
    AND expires_ms > :now_ms AND expires_ms - :now_ms >= ttl_ms * :late_share
    AND (call_id IS NULL OR instr(call_id, '~') = 0
        OR substr(call_id, 1, instr(call_id, '~') - 1) IN (SELECT value FROM json_each(:own_locks)))
    AND (max_hold_ms IS NULL
        OR max(expires_ms, :now_ms + coalesce(:ttl_ms, ttl_ms)) < claimed_ms + max_hold_ms)
RETURNING token, expires_ms - :now_ms

-- name: look_run
-- primary key, one walk along it; how many of a run would be renewed as above, and the least and the most time left
SELECT
    count(*),
    min(max(l.expires_ms, :now_ms + coalesce(:ttl_ms, l.ttl_ms))) - :now_ms,
    max(max(l.expires_ms, :now_ms + coalesce(:ttl_ms, l.ttl_ms))) - :now_ms
FROM leases l
WHERE l.token BETWEEN :first AND :last AND l.tenant = :tenant AND l.ended IS NULL AND l.cancelling = 0
    AND l.expires_ms > :now_ms AND l.expires_ms - :now_ms >= l.ttl_ms * :late_share
    AND (l.call_id IS NULL OR instr(l.call_id, '~') = 0
        OR substr(l.call_id, 1, instr(l.call_id, '~') - 1) IN (SELECT value FROM json_each(:own_locks)))
    AND (l.max_hold_ms IS NULL
        OR max(l.expires_ms, :now_ms + coalesce(:ttl_ms, l.ttl_ms)) < l.claimed_ms + l.max_hold_ms)

-- name: extend_run
-- primary key, one walk along it; touches no index. Every lease of the run was looked at under the same lock
UPDATE leases SET expires_ms = :expires_ms, beat_ms = :now_ms, beat_wall_ms = :wall_ms, excused = 0
WHERE token BETWEEN :first AND :last

-- name: postpone_check
-- primary key, and one move in leases_open for each ttl at most
UPDATE leases SET check_ms = :check_ms WHERE token = :token

-- name: end_lease
-- primary key
UPDATE leases SET
    ended = :ended, ended_ms = :ended_ms, ended_wall_ms = :ended_wall_ms, end_digest = :end_digest,
    end_answer = :end_answer
WHERE token = :token AND ended IS NULL

-- name: mark_cancelling
-- primary key
UPDATE leases SET cancelling = 1 WHERE token = :token

-- name: put_checkpoint
-- primary key (task_seq, name, version)
INSERT INTO checkpoints (task_seq, name, version, token, wall_ms, value)
SELECT :task_seq, :name, coalesce(max(version), 0) + 1, :token, :wall_ms, :value
FROM checkpoints WHERE task_seq = :task_seq AND name = :name
RETURNING version

-- name: trim_checkpoints
-- primary key (task_seq, name, version); in the transaction that saved the newest, which therefore always stays
DELETE FROM checkpoints WHERE task_seq = :task_seq AND name = :name AND version <= :version - :kept

-- name: put_queue
-- primary key (tenant, name); not the state of turns, which claims write
INSERT INTO queues (
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
-- the next number is the end of the primary key, as read at the start of the transaction
INSERT INTO events (seq, task_seq, before, kind, state, token, holder, at_ms, wall_ms, detail)
VALUES (:seq, :task_seq, :before, :kind, :state, :token, :holder, :at_ms, :wall_ms, :detail)

-- name: count_submitted
-- primary key (tenant, queue)
INSERT INTO totals (tenant, queue, submitted) VALUES (:tenant, :queue, 1)
ON CONFLICT (tenant, queue) DO UPDATE SET submitted = submitted + 1

-- name: count_takeover
-- primary key (tenant, queue)
INSERT INTO totals (tenant, queue, takeovers) SELECT tenant, queue, 1 FROM tasks WHERE seq = :task_seq
ON CONFLICT (tenant, queue) DO UPDATE SET takeovers = takeovers + 1

-- name: find_task
-- index tasks_id, then primary keys
SELECT i.input, l.holder, l.claimed_wall_ms, l.beat_wall_ms, l.beat_ms, l.expires_ms, l.ttl_ms, t.*
FROM tasks t JOIN inputs i ON i.task_seq = t.seq LEFT JOIN leases l ON l.token = t.token
WHERE t.tenant = :tenant AND t.id = :id

-- name: find_tasks
-- primary key, from a sequence number on; by an index of the tenant's it would sort all tasks for each page
SELECT i.input, l.holder, l.claimed_wall_ms, l.beat_wall_ms, l.beat_ms, l.expires_ms, l.ttl_ms, t.*
FROM tasks t NOT INDEXED JOIN inputs i ON i.task_seq = t.seq LEFT JOIN leases l ON l.token = t.token
WHERE t.tenant = :tenant AND t.seq > :after
    AND (:queue IS NULL OR t.queue = :queue) AND (:kind IS NULL OR t.kind = :kind)
    AND (:state IS NULL OR t.state = :state)
    AND (:labels IS NULL OR NOT EXISTS (
        SELECT 1 FROM json_each(:labels) j WHERE NOT EXISTS (
            SELECT 1 FROM json_each(t.labels) k WHERE k.key = j.key AND k.value = j.value)))
ORDER BY t.seq LIMIT :limit

-- name: count_ready_few
-- indexes tasks_ready, tasks_due and tasks_due_wall, and no further than the limit
SELECT count(*) FROM (
    SELECT 1 FROM tasks INDEXED BY tasks_ready WHERE tenant = :tenant AND state = 'ready' AND delayed = 0
    UNION ALL
    SELECT 1 FROM tasks INDEXED BY tasks_due WHERE tenant = :tenant AND delayed = 1 AND due_ms IS NOT NULL
    UNION ALL
    SELECT 1 FROM tasks INDEXED BY tasks_due_wall WHERE tenant = :tenant AND delayed = 1 AND due_wall_ms IS NOT NULL
    LIMIT :limit)

-- name: find_tasks_ready
-- indexes tasks_ready, tasks_due and tasks_due_wall, sorted: where few are ready, however many have finished
SELECT i.input, l.holder, l.claimed_wall_ms, l.beat_wall_ms, l.beat_ms, l.expires_ms, l.ttl_ms, t.*
FROM (
    SELECT seq FROM tasks INDEXED BY tasks_ready WHERE tenant = :tenant AND state = 'ready' AND delayed = 0
    UNION ALL
    SELECT seq FROM tasks INDEXED BY tasks_due WHERE tenant = :tenant AND delayed = 1 AND due_ms IS NOT NULL
    UNION ALL
    SELECT seq FROM tasks INDEXED BY tasks_due_wall
    WHERE tenant = :tenant AND delayed = 1 AND due_wall_ms IS NOT NULL) s
CROSS JOIN tasks t ON t.seq = s.seq JOIN inputs i ON i.task_seq = t.seq LEFT JOIN leases l ON l.token = t.token
WHERE t.seq > :after
    AND (:queue IS NULL OR t.queue = :queue) AND (:kind IS NULL OR t.kind = :kind) AND t.state = :state
    AND (:labels IS NULL OR NOT EXISTS (
        SELECT 1 FROM json_each(:labels) j WHERE NOT EXISTS (
            SELECT 1 FROM json_each(t.labels) k WHERE k.key = j.key AND k.value = j.value)))
ORDER BY t.seq LIMIT :limit

-- name: find_tasks_leased
-- index leases_open: the few that are held, however many have finished
SELECT i.input, l.holder, l.claimed_wall_ms, l.beat_wall_ms, l.beat_ms, l.expires_ms, l.ttl_ms, t.*
FROM leases l INDEXED BY leases_open CROSS JOIN tasks t ON t.seq = l.task_seq JOIN inputs i ON i.task_seq = t.seq
WHERE l.ended IS NULL AND t.tenant = :tenant AND t.seq > :after
    AND (:queue IS NULL OR t.queue = :queue) AND (:kind IS NULL OR t.kind = :kind) AND t.state = :state
    AND (:labels IS NULL OR NOT EXISTS (
        SELECT 1 FROM json_each(:labels) j WHERE NOT EXISTS (
            SELECT 1 FROM json_each(t.labels) k WHERE k.key = j.key AND k.value = j.value)))
ORDER BY t.seq LIMIT :limit

-- name: find_tasks_set_aside
-- index tasks_set_aside: dead letters and waits, however many have finished
SELECT i.input, l.holder, l.claimed_wall_ms, l.beat_wall_ms, l.beat_ms, l.expires_ms, l.ttl_ms, t.*
FROM tasks t INDEXED BY tasks_set_aside JOIN inputs i ON i.task_seq = t.seq LEFT JOIN leases l ON l.token = t.token
WHERE t.tenant = :tenant AND t.state = :state AND (t.state = 'waiting' OR t.state = 'failed' OR t.state = 'cancelled') AND t.seq > :after
    AND (:queue IS NULL OR t.queue = :queue) AND (:kind IS NULL OR t.kind = :kind)
    AND (:labels IS NULL OR NOT EXISTS (
        SELECT 1 FROM json_each(:labels) j WHERE NOT EXISTS (
            SELECT 1 FROM json_each(t.labels) k WHERE k.key = j.key AND k.value = j.value)))
ORDER BY t.seq LIMIT :limit

-- name: find_input
-- primary key
SELECT input FROM inputs WHERE task_seq = :seq

-- name: find_checkpoint
-- primary key (task_seq, name, version), backwards
SELECT value FROM checkpoints WHERE task_seq = :task_seq AND name = :name ORDER BY version DESC LIMIT 1

-- name: find_queue
-- primary key (tenant, name)
SELECT tenant, name, paused, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses, retention_ms, concurrency,
    share_concurrency, rate, rate_ms, shared_from, last_share, full_us
FROM queues WHERE tenant = :tenant AND name = :name

-- name: find_task_events
-- index tasks_id, then one primary key for each step back along the chain, no further than is asked for
WITH RECURSIVE chain (seq, task_seq) AS (
    SELECT t.last_event, t.seq FROM tasks t WHERE t.tenant = :tenant AND t.id = :id AND t.last_event > :after
    UNION ALL
    SELECT e.before, c.task_seq FROM chain c JOIN events e ON e.seq = c.seq WHERE e.before > :after)
SELECT e.seq, t.id, t.queue, e.kind, e.state, e.token, e.holder, e.wall_ms, e.detail
FROM chain c CROSS JOIN events e ON e.seq = c.seq CROSS JOIN tasks t ON t.seq = c.task_seq
ORDER BY e.seq LIMIT :limit

-- name: find_events
-- primary key; an event of the whole store, such as an outage, has no task and concerns everybody
SELECT e.seq, t.id, t.queue, e.kind, e.state, e.token, e.holder, e.wall_ms, e.detail
FROM events e LEFT JOIN tasks t ON t.seq = e.task_seq
WHERE e.seq > :after AND (e.task_seq IS NULL OR (t.tenant = :tenant AND (:queue IS NULL OR t.queue = :queue)))
ORDER BY e.seq LIMIT :limit

-- name: last_event
-- primary key
SELECT coalesce(max(seq), 0) FROM events

-- name: last_reading
-- the largest past reading of store time that was ever committed; never a deadline
SELECT max(
    coalesce((SELECT at_ms FROM events ORDER BY seq DESC LIMIT 1), 0),
    coalesce((SELECT max(beat_ms) FROM leases WHERE ended IS NULL), 0))

-- name: extend_all_open
-- index leases_open; the outage rule, the one exception to strict expiry
UPDATE leases SET
    expires_ms = max(expires_ms, :now_ms + ttl_ms), check_ms = max(check_ms, :now_ms + ttl_ms), excused = 1
WHERE ended IS NULL

-- name: rebase_clock
UPDATE meta SET
    boot_id = :boot_id, time_namespace = :time_namespace, machine_id = :machine_id, mono_base_ms = :mono_base_ms,
    store_base_ms = :store_base_ms, wall_at_base_ms = :wall_at_base_ms
WHERE one = 1

-- name: insert_rejection
INSERT INTO rejections (task_seq, tenant, task_id, verb, holder, token, current_token, reason, late_ms, wall_ms, result)
VALUES (:task_seq, :tenant, :task_id, :verb, :holder, :token, :current_token, :reason, :late_ms, :wall_ms, :result)

-- name: forget_result
-- index rejections_task; only the newest refused result of a token is kept
UPDATE rejections SET result = NULL WHERE task_seq = :task_seq AND token = :token AND result IS NOT NULL

-- name: trim_rejections
-- primary key
DELETE FROM rejections WHERE seq <= (SELECT max(seq) FROM rejections) - :kept

-- name: count_rejection
-- primary key (tenant, reason)
INSERT INTO rejection_counts (tenant, reason, n) VALUES (:tenant, :reason, 1)
ON CONFLICT (tenant, reason) DO UPDATE SET n = n + 1

-- name: find_rejections
-- primary key, newest first
SELECT seq, task_id, verb, holder, token, current_token, reason, late_ms, wall_ms, result FROM rejections
WHERE tenant = :tenant AND (:task_id IS NULL OR task_id = :task_id) AND (:before IS NULL OR seq < :before)
ORDER BY seq DESC LIMIT :limit
