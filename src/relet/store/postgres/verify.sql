-- Statements of verify.py alone. All of them read one snapshot, from one end of a table to the other; nobody waits for
-- them, and they wait for nobody.

-- name: every_task
-- primary key; the end of each task's events by index events_task, since no column follows it here
SELECT t.seq, t.tenant, t.id, t.queue, t.kind, t.state, t.delayed, t.due_ms, t.due_wall_ms, t.priority, t.attempt,
    t.failures, t.losses, t.streak, t.token, t.cancel_reason, t.ttl_ms, t.timeout_ms, t.max_hold_ms, t.max_attempts,
    t.max_losses, t.deadline_wall_ms, t.exclusive, t.share, t.labels, t.progress, t.error, t.code, t.reason, t.result,
    t.created_wall_ms, t.updated_wall_ms, t.waiting_for, t.wait_seq, t.unsettled,
    coalesce((SELECT max(e.seq) FROM relet.events e WHERE e.task_seq = t.seq), 0)
FROM relet.tasks t ORDER BY t.seq

-- name: every_lease
-- the whole table, sorted
SELECT l.task_seq, l.* FROM relet.leases l ORDER BY l.task_seq, l.token

-- name: every_event
-- index events_task, or the whole table, sorted; an event of the whole store, such as an outage, has no task. The one
-- before is that of the next smaller number: no chain is kept
SELECT e.task_seq, lag(e.seq, 1, 0::bigint) OVER (PARTITION BY e.task_seq ORDER BY e.seq), e.seq, t.id, t.queue,
    e.kind, e.state, e.token, e.holder, e.wall_ms, e.detail
FROM relet.events e LEFT JOIN relet.tasks t ON t.seq = e.task_seq
WHERE e.task_seq IS NOT NULL ORDER BY e.task_seq, e.seq

-- name: every_wait
-- the whole table, sorted
SELECT w.task_seq, w.* FROM relet.waits w ORDER BY w.task_seq, w.seq

-- name: every_effect
-- index effects_task, or the whole table, sorted
SELECT e.task_seq, e.* FROM relet.effects e ORDER BY e.task_seq, e.seq

-- name: every_write
-- primary keys and index artifacts_name, sorted together
SELECT task_seq, 'checkpoint', name, version, token FROM relet.checkpoints
UNION ALL SELECT task_seq, 'step', name || ' ' || slot, 0, token FROM relet.steps
UNION ALL SELECT task_seq, 'artifact', name, 0, token FROM relet.artifacts
ORDER BY 1, 2, 3, 4

-- name: without_input
-- primary keys
SELECT t.id FROM relet.tasks t LEFT JOIN relet.inputs i ON i.task_seq = t.seq WHERE i.task_seq IS NULL

-- name: totals_off
-- primary key (tenant, queue, slot), its slots added up, against a count of the whole table
WITH said AS (
    SELECT tenant, queue, sum(submitted)::bigint AS submitted, sum(pruned)::bigint AS pruned
    FROM relet.totals GROUP BY tenant, queue),
counted AS (SELECT tenant, queue, count(*) AS n FROM relet.tasks GROUP BY tenant, queue)
SELECT coalesce(o.tenant, c.tenant), coalesce(o.queue, c.queue), coalesce(o.submitted, 0),
    coalesce(o.pruned, 0) + coalesce(c.n, 0)
FROM said o FULL JOIN counted c ON c.tenant = o.tenant AND c.queue = o.queue
WHERE coalesce(o.submitted, 0) - coalesce(o.pruned, 0) <> coalesce(c.n, 0)

-- name: pruned_off
-- primary key (tenant, queue, slot), its slots added up, against a count of the whole table; all of them, those that
-- failed, those not done
WITH counted AS (
    SELECT tenant, queue, count(*) AS n, count(*) FILTER (WHERE state = 'failed') AS failed,
        count(*) FILTER (WHERE state <> 'done') AS undone
    FROM relet.tombstones GROUP BY tenant, queue),
summed AS (
    SELECT tenant, queue, sum(pruned)::bigint AS n, sum(pruned_failed)::bigint AS failed,
        sum(pruned_undone)::bigint AS undone
    FROM relet.totals GROUP BY tenant, queue),
said AS (
    SELECT o.tenant, o.queue, o.n AS here, coalesce(c.n, 0) AS there
    FROM summed o LEFT JOIN counted c ON c.tenant = o.tenant AND c.queue = o.queue
    UNION ALL SELECT o.tenant, o.queue, o.failed, coalesce(c.failed, 0)
    FROM summed o LEFT JOIN counted c ON c.tenant = o.tenant AND c.queue = o.queue
    UNION ALL SELECT o.tenant, o.queue, o.undone, coalesce(c.undone, 0)
    FROM summed o LEFT JOIN counted c ON c.tenant = o.tenant AND c.queue = o.queue)
SELECT tenant, queue, here, there FROM said WHERE here <> there

-- name: second_lives
-- primary key (tenant, id) and index tasks_id
SELECT t.id FROM relet.tombstones g JOIN relet.tasks t ON t.tenant = g.tenant AND t.id = g.id

-- name: takeovers_off
-- primary key (tenant, queue, slot), its slots added up, against a count of the whole table
WITH said AS (
    SELECT tenant, queue, sum(takeovers)::bigint AS takeovers, sum(pruned_takeovers)::bigint AS pruned
    FROM relet.totals GROUP BY tenant, queue),
counted AS (
    SELECT t.tenant, t.queue, count(*) AS n FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.took_over IS NOT NULL GROUP BY t.tenant, t.queue)
SELECT o.tenant, o.queue, o.takeovers, o.pruned + coalesce(c.n, 0)
FROM said o LEFT JOIN counted c ON c.tenant = o.tenant AND c.queue = o.queue
WHERE o.takeovers <> o.pruned + coalesce(c.n, 0)

-- name: beyond_the_mark
-- the end of a primary key, the single row, and the last number that was drawn
SELECT l.token, m.epoch, s.last_value
FROM (SELECT max(token) AS token FROM relet.leases) l CROSS JOIN relet.meta m CROSS JOIN relet.tokens s
WHERE l.token > (m.epoch << 32) + s.last_value

-- name: every_digest
-- index artifacts_digest and the indexes of filed values
SELECT sha256 FROM relet.artifacts
UNION SELECT substr(input, 20, 64) FROM relet.inputs WHERE substr(input, 1, 19) = '{"relet:artifact":"'
UNION SELECT substr(result, 20, 64) FROM relet.tasks WHERE substr(result, 1, 19) = '{"relet:artifact":"'
UNION SELECT substr(value, 20, 64) FROM relet.checkpoints WHERE substr(value, 1, 19) = '{"relet:artifact":"'
UNION SELECT substr(value, 20, 64) FROM relet.steps WHERE substr(value, 1, 19) = '{"relet:artifact":"'

-- name: every_audit
-- primary key
SELECT seq, wall_ms, key_id, key_name, tenant, operation, target, outcome, address, digest
FROM relet.api_audit ORDER BY seq

-- name: audit_ends
-- the single row
SELECT seq, digest FROM relet.api_audit_end
