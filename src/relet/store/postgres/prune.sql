-- Statements of prune for the PostgreSQL engine. The lock of a finished task is the lock of all that leaves with it;
-- each block says which index finds what belongs to one.

-- name: has_retention
-- primary key of queues, which are few
SELECT EXISTS (SELECT 1 FROM relet.queues WHERE tenant = :tenant AND retention_ms IS NOT NULL)

-- name: last_task
-- primary key
SELECT coalesce(max(seq), 0) FROM relet.tasks

-- name: lock_prunable
-- primary key, within bounds; a queue without a retention keeps its tasks for ever. Passes over what others have locked
WITH held AS MATERIALIZED (
    SELECT t.* FROM relet.tasks t LEFT JOIN relet.queues q ON q.tenant = t.tenant AND q.name = t.queue
    WHERE t.seq > :after AND t.seq <= :upto AND t.tenant = :tenant AND (:queue::text IS NULL OR t.queue = :queue)
        AND (t.state = 'done' OR t.state = 'failed' OR t.state = 'cancelled') AND t.unsettled = 0
        AND t.updated_wall_ms <= :wall_ms - coalesce(:older_ms, q.retention_ms)
    ORDER BY t.seq LIMIT :limit FOR UPDATE OF t SKIP LOCKED)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.seq

-- name: lock_effects_of
-- index effects_task; locked, since another task may be about to take one over by its key
WITH held AS MATERIALIZED (
    SELECT e.* FROM relet.effects e WHERE e.task_seq = :task_seq ORDER BY e.seq FOR UPDATE)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.seq

-- name: find_tombstone
-- primary key (tenant, id)
SELECT pruned_wall_ms FROM relet.tombstones WHERE tenant = :tenant AND id = :id

-- name: is_unrecorded
-- primary keys of leases, and of totals and tombstones: one look for each tenant that there ever was
SELECT NOT EXISTS (SELECT 1 FROM relet.leases WHERE token = :token) AND NOT EXISTS (
    SELECT 1 FROM (SELECT DISTINCT tenant FROM relet.totals) o
    JOIN relet.tombstones g ON g.tenant = o.tenant AND g.id = :id)

-- name: put_tombstone
-- primary key (tenant, id)
INSERT INTO relet.tombstones (tenant, id, queue, state, token, result_digest, pruned_wall_ms)
VALUES (:tenant, :id, :queue, :state, :token, :result_digest, :wall_ms)

-- name: count_taken_over
-- index events_task, then the primary key of leases: each grant has its event
SELECT count(*) FROM relet.leases l
WHERE l.token = ANY (ARRAY(SELECT e.token FROM relet.events e WHERE e.task_seq = :task_seq AND e.kind = 'claimed'))
    AND l.task_seq = :task_seq AND l.took_over IS NOT NULL

-- name: add_pruned
-- primary key (tenant, queue, slot), in its order, and last in a transaction: nobody waits for another's tasks meanwhile
INSERT INTO relet.totals AS o (tenant, queue, slot, pruned, pruned_undone, pruned_failed, pruned_takeovers)
SELECT
    p ->> 0, p ->> 1, pg_backend_pid() % 16, (p ->> 2)::bigint, (p ->> 3)::bigint, (p ->> 4)::bigint, (p ->> 5)::bigint
FROM jsonb_array_elements(:pruned::jsonb) p ORDER BY 1, 2
ON CONFLICT (tenant, queue, slot) DO UPDATE SET
    pruned = o.pruned + excluded.pruned, pruned_undone = o.pruned_undone + excluded.pruned_undone,
    pruned_failed = o.pruned_failed + excluded.pruned_failed,
    pruned_takeovers = o.pruned_takeovers + excluded.pruned_takeovers

-- name: prune_leases
-- index events_task, then the primary keys of leases and of late_beats: what is kept of late renewals leaves with its lease
WITH gone AS (
    DELETE FROM relet.leases
    WHERE token = ANY (ARRAY(SELECT e.token FROM relet.events e WHERE e.task_seq = :task_seq AND e.kind = 'claimed'))
        AND task_seq = :task_seq
    RETURNING token)
DELETE FROM relet.late_beats WHERE token IN (SELECT token FROM gone)

-- name: prune_events
-- index events_task
DELETE FROM relet.events WHERE task_seq = :task_seq RETURNING seq

-- name: prune_input
-- primary key
DELETE FROM relet.inputs WHERE task_seq = :task_seq

-- name: prune_checkpoints
-- primary key (task_seq, name, version)
DELETE FROM relet.checkpoints WHERE task_seq = :task_seq

-- name: prune_steps
-- primary key (task_seq, name, slot)
DELETE FROM relet.steps WHERE task_seq = :task_seq

-- name: prune_waits
-- index waits_question
DELETE FROM relet.waits WHERE task_seq = :task_seq

-- name: prune_signals
-- index signals_call
DELETE FROM relet.signals WHERE task_seq = :task_seq

-- name: prune_artifacts
-- index artifacts_name
DELETE FROM relet.artifacts WHERE task_seq = :task_seq

-- name: prune_evidence
-- indexes effects_task and evidence_effect
DELETE FROM relet.evidence WHERE effect_seq IN (SELECT seq FROM relet.effects WHERE task_seq = :task_seq)

-- name: prune_effects
-- index effects_task
DELETE FROM relet.effects WHERE task_seq = :task_seq

-- name: prune_rejections
-- index rejections_task
DELETE FROM relet.rejections WHERE task_seq = :task_seq

-- name: prune_task
-- primary key
DELETE FROM relet.tasks WHERE seq = :task_seq
