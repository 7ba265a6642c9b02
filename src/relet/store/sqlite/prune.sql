-- Statements of prune for the SQLite engine. It runs where SQLite does not look for rows that refer to those which
-- leave: leases and events have no index by task, and so a task's own chain of events says which ones are its.

-- name: has_retention
-- primary key of queues, which are few
SELECT EXISTS (SELECT 1 FROM queues WHERE tenant = :tenant AND retention_ms IS NOT NULL)

-- name: last_task
-- primary key
SELECT coalesce(max(seq), 0) FROM tasks

-- name: lock_prunable
-- primary key, within bounds; a queue without a retention keeps its tasks for ever
SELECT t.* FROM tasks t LEFT JOIN queues q ON q.tenant = t.tenant AND q.name = t.queue
WHERE t.seq > :after AND t.seq <= :upto AND t.tenant = :tenant AND (:queue IS NULL OR t.queue = :queue)
    AND (t.state = 'done' OR t.state = 'failed' OR t.state = 'cancelled') AND t.unsettled = 0
    AND t.updated_wall_ms <= :wall_ms - coalesce(:older_ms, q.retention_ms)
ORDER BY t.seq LIMIT :limit

-- name: lock_effects_of
-- index effects_task
SELECT e.* FROM effects e WHERE e.task_seq = :task_seq

-- name: find_tombstone
-- primary key (tenant, id)
SELECT pruned_wall_ms FROM tombstones WHERE tenant = :tenant AND id = :id

-- name: is_unrecorded
-- primary keys of leases, and of totals and tombstones: one look for each queue that there ever was
SELECT NOT EXISTS (SELECT 1 FROM leases WHERE token = :token) AND NOT EXISTS (
    SELECT 1 FROM totals t CROSS JOIN tombstones g ON g.tenant = t.tenant AND g.id = :id)

-- name: put_tombstone
-- primary key (tenant, id)
INSERT INTO tombstones (tenant, id, queue, state, token, result_digest, pruned_wall_ms)
VALUES (:tenant, :id, :queue, :state, :token, :result_digest, :wall_ms)

-- name: count_pruned
-- primary key (tenant, queue), then one primary key for each step back along the chain
WITH RECURSIVE chain (seq) AS (
    SELECT :last_event UNION ALL SELECT e.before FROM chain c JOIN events e ON e.seq = c.seq WHERE e.before > 0)
UPDATE totals SET
    pruned = pruned + 1, pruned_undone = pruned_undone + (:state <> 'done'),
    pruned_takeovers = pruned_takeovers + (
        SELECT count(*) FROM chain c CROSS JOIN events e ON e.seq = c.seq CROSS JOIN leases l ON l.token = e.token
        WHERE e.kind = 'claimed' AND l.took_over IS NOT NULL)
WHERE tenant = :tenant AND queue = :queue

-- name: prune_leases
-- one primary key for each step back along the chain, and one for each lease
WITH RECURSIVE chain (seq) AS (
    SELECT :last_event UNION ALL SELECT e.before FROM chain c JOIN events e ON e.seq = c.seq WHERE e.before > 0)
DELETE FROM leases WHERE task_seq = :task_seq AND token IN (
    SELECT e.token FROM chain c CROSS JOIN events e ON e.seq = c.seq WHERE e.kind = 'claimed')

-- name: prune_events
-- one primary key for each step back along the chain, and one for each event
WITH RECURSIVE chain (seq) AS (
    SELECT :last_event UNION ALL SELECT e.before FROM chain c JOIN events e ON e.seq = c.seq WHERE e.before > 0)
DELETE FROM events WHERE task_seq = :task_seq AND seq IN (SELECT seq FROM chain) RETURNING seq

-- name: prune_input
-- primary key
DELETE FROM inputs WHERE task_seq = :task_seq

-- name: prune_checkpoints
-- primary key (task_seq, name, version)
DELETE FROM checkpoints WHERE task_seq = :task_seq

-- name: prune_steps
-- primary key (task_seq, name, slot)
DELETE FROM steps WHERE task_seq = :task_seq

-- name: prune_waits
-- index waits_question
DELETE FROM waits WHERE task_seq = :task_seq

-- name: prune_signals
-- index signals_call
DELETE FROM signals WHERE task_seq = :task_seq

-- name: prune_artifacts
-- index artifacts_name
DELETE FROM artifacts WHERE task_seq = :task_seq

-- name: prune_evidence
-- indexes effects_task and evidence_effect
DELETE FROM evidence WHERE effect_seq IN (SELECT seq FROM effects WHERE task_seq = :task_seq)

-- name: prune_effects
-- index effects_task
DELETE FROM effects WHERE task_seq = :task_seq

-- name: prune_rejections
-- index rejections_task
DELETE FROM rejections WHERE task_seq = :task_seq

-- name: prune_task
-- primary key
DELETE FROM tasks WHERE seq = :task_seq
