-- Statements of verify.py alone. All of them read one snapshot, from one end of a table to the other; nothing waits
-- for them, and what they must sort is sorted outside of the file.

-- name: every_task
-- primary key
SELECT t.* FROM tasks t ORDER BY t.seq

-- name: every_lease
-- the whole table, sorted
SELECT l.task_seq, l.* FROM leases l ORDER BY l.task_seq, l.token

-- name: every_event
-- the whole table, sorted; an event of the whole store, such as an outage, has no task
SELECT e.task_seq, e.before, e.seq, t.id, t.queue, e.kind, e.state, e.token, e.holder, e.wall_ms, e.detail
FROM events e LEFT JOIN tasks t ON t.seq = e.task_seq WHERE e.task_seq IS NOT NULL ORDER BY e.task_seq, e.seq

-- name: every_wait
-- the whole table, sorted
SELECT w.task_seq, w.* FROM waits w ORDER BY w.task_seq, w.seq

-- name: every_effect
-- index effects_task
SELECT e.task_seq, e.* FROM effects e ORDER BY e.task_seq, e.seq

-- name: every_write
-- primary keys and index artifacts_name, sorted together
SELECT task_seq, 'checkpoint', name, version, token FROM checkpoints
UNION ALL SELECT task_seq, 'step', name || ' ' || slot, 0, token FROM steps
UNION ALL SELECT task_seq, 'artifact', name, 0, token FROM artifacts
ORDER BY 1, 2, 3, 4

-- name: without_input
-- primary keys
SELECT t.id FROM tasks t LEFT JOIN inputs i ON i.task_seq = t.seq WHERE i.task_seq IS NULL

-- name: totals_off
-- primary key (tenant, queue) against a count of the whole table
SELECT coalesce(t.tenant, c.tenant), coalesce(t.queue, c.queue), coalesce(t.submitted, 0),
    coalesce(t.pruned, 0) + coalesce(c.n, 0)
FROM totals t FULL JOIN (SELECT tenant, queue, count(*) AS n FROM tasks GROUP BY tenant, queue) c
    ON c.tenant = t.tenant AND c.queue = t.queue
WHERE coalesce(t.submitted, 0) - coalesce(t.pruned, 0) <> coalesce(c.n, 0)

-- name: pruned_off
-- primary key (tenant, queue) against a count of the whole table; all of them, those that failed, those not done
WITH counted AS (
    SELECT tenant, queue, count(*) AS n, sum(state = 'failed') AS failed, sum(state <> 'done') AS undone
    FROM tombstones GROUP BY tenant, queue),
said AS (
    SELECT t.tenant, t.queue, t.pruned AS here, coalesce(c.n, 0) AS there
    FROM totals t LEFT JOIN counted c ON c.tenant = t.tenant AND c.queue = t.queue
    UNION ALL SELECT t.tenant, t.queue, t.pruned_failed, coalesce(c.failed, 0)
    FROM totals t LEFT JOIN counted c ON c.tenant = t.tenant AND c.queue = t.queue
    UNION ALL SELECT t.tenant, t.queue, t.pruned_undone, coalesce(c.undone, 0)
    FROM totals t LEFT JOIN counted c ON c.tenant = t.tenant AND c.queue = t.queue)
SELECT tenant, queue, here, there FROM said WHERE here <> there

-- name: second_lives
-- primary key (tenant, id) and index tasks_id
SELECT t.id FROM tombstones g JOIN tasks t ON t.tenant = g.tenant AND t.id = g.id

-- name: takeovers_off
-- primary key (tenant, queue) against a count of the whole table
SELECT t.tenant, t.queue, t.takeovers, t.pruned_takeovers + coalesce(c.n, 0)
FROM totals t LEFT JOIN (
    SELECT k.tenant, k.queue, count(*) AS n FROM leases l JOIN tasks k ON k.seq = l.task_seq
    WHERE l.took_over IS NOT NULL GROUP BY k.tenant, k.queue) c ON c.tenant = t.tenant AND c.queue = t.queue
WHERE t.takeovers <> t.pruned_takeovers + coalesce(c.n, 0)

-- name: beyond_the_mark
-- the end of a primary key, and the single row
SELECT max(l.token), m.epoch, m.mark FROM leases l, meta m
GROUP BY m.one HAVING max(l.token) > (m.epoch << 32 | m.mark)

-- name: every_digest
-- index artifacts_digest and the indexes of filed values
SELECT sha256 FROM artifacts
UNION SELECT substr(input, 20, 64) FROM inputs WHERE substr(input, 1, 19) = '{"relet:artifact":"'
UNION SELECT substr(result, 20, 64) FROM tasks WHERE substr(result, 1, 19) = '{"relet:artifact":"'
UNION SELECT substr(value, 20, 64) FROM checkpoints WHERE substr(value, 1, 19) = '{"relet:artifact":"'
UNION SELECT substr(value, 20, 64) FROM steps WHERE substr(value, 1, 19) = '{"relet:artifact":"'

-- name: every_audit
-- primary key
SELECT seq, wall_ms, key_id, key_name, tenant, operation, target, outcome, address, digest
FROM api_audit ORDER BY seq

-- name: audit_ends
-- the single row
SELECT seq, digest FROM api_audit_end
