-- Statements of who looks at the store as a whole: figures, its health, what its leases have taken. They only read; each
-- block says which index keeps it from the finished tasks, or how far it goes at most.

-- name: find_tenants
-- primary keys (tenant, queue) of totals and (tenant, name) of queues: two seeks for each tenant, and its queues counted
WITH RECURSIVE names (name) AS (
    SELECT (SELECT min(tenant) FROM (
        SELECT min(tenant) AS tenant FROM totals WHERE tenant > :after
        UNION ALL SELECT min(tenant) FROM queues WHERE tenant > :after))
    UNION ALL
    SELECT (SELECT min(tenant) FROM (
        SELECT min(tenant) AS tenant FROM totals WHERE tenant > names.name
        UNION ALL SELECT min(tenant) FROM queues WHERE tenant > names.name))
    FROM names WHERE names.name IS NOT NULL)
SELECT names.name, (
    SELECT count(*) FROM (
        SELECT queue FROM totals WHERE tenant = names.name UNION SELECT name FROM queues WHERE tenant = names.name))
FROM names WHERE names.name IS NOT NULL LIMIT :limit

-- name: count_rejections
-- primary key (tenant, reason)
SELECT reason, n FROM rejection_counts WHERE tenant = :tenant ORDER BY reason

-- name: count_ready
-- index tasks_ready
SELECT queue, count(*) FROM tasks INDEXED BY tasks_ready
WHERE tenant = :tenant AND (:queue IS NULL OR queue = :queue) AND state = 'ready' AND delayed = 0 GROUP BY queue

-- name: count_delayed
-- indexes tasks_due and tasks_due_wall
SELECT queue, count(*) FROM (
    SELECT queue FROM tasks INDEXED BY tasks_due
    WHERE tenant = :tenant AND (:queue IS NULL OR queue = :queue) AND delayed = 1 AND due_ms IS NOT NULL
        AND state = 'ready'
    UNION ALL
    SELECT queue FROM tasks INDEXED BY tasks_due_wall
    WHERE tenant = :tenant AND (:queue IS NULL OR queue = :queue) AND delayed = 1 AND due_wall_ms IS NOT NULL
        AND state = 'ready')
GROUP BY queue

-- name: count_leased
-- index leases_open
SELECT t.queue, count(*), sum(l.expires_ms > :now_ms),
    sum(l.expires_ms > :now_ms AND l.beat_ms + l.ttl_ms / 3 < :now_ms)
FROM leases l INDEXED BY leases_open JOIN tasks t ON t.seq = l.task_seq
WHERE l.ended IS NULL AND t.tenant = :tenant AND (:queue IS NULL OR t.queue = :queue) GROUP BY t.queue

-- name: count_set_aside
-- index tasks_set_aside
SELECT queue, state, count(*) FROM tasks INDEXED BY tasks_set_aside
WHERE tenant = :tenant AND (:queue IS NULL OR queue = :queue) AND (state = 'waiting' OR state = 'failed' OR state = 'cancelled')
GROUP BY queue, state

-- name: count_totals
-- primary key (tenant, queue)
SELECT queue, submitted, takeovers, pruned_failed, pruned_undone - pruned_failed
FROM totals WHERE tenant = :tenant AND (:queue IS NULL OR queue = :queue)

-- name: count_reconciling
-- index waits_reconciling, then primary keys: the few for which a person must find out what happened
SELECT t.queue, count(*) FROM waits w INDEXED BY waits_reconciling JOIN tasks t ON t.seq = w.task_seq
WHERE w.kind = 'reconcile' AND w.decision IS NULL AND w.tenant = :tenant AND t.wait_seq = w.seq
    AND t.state = 'waiting' AND (:queue IS NULL OR t.queue = :queue)
GROUP BY t.queue

-- name: find_lapsed
-- index leases_open: the few that are held, and of them those that expired more than half a ttl ago
SELECT count(*), t.id, t.queue, l.holder, l.token, l.ttl_ms, :now_ms - min(l.expires_ms)
FROM leases l INDEXED BY leases_open JOIN tasks t ON t.seq = l.task_seq
WHERE l.ended IS NULL AND l.expires_ms + l.ttl_ms / 2 <= :now_ms AND t.tenant = :tenant

-- name: find_quiet
-- index leases_open; one that is held to the end of its max_hold is not renewed any more, and all is well
SELECT count(*), t.id, t.queue, l.holder, l.token, l.ttl_ms, l.expires_ms - :now_ms,
    min((l.expires_ms - :now_ms) * 1000 / l.ttl_ms)
FROM leases l INDEXED BY leases_open JOIN tasks t ON t.seq = l.task_seq
WHERE l.ended IS NULL AND l.expires_ms > :now_ms AND (l.expires_ms - :now_ms) * 3 < l.ttl_ms AND l.cancelling = 0
    AND (l.max_hold_ms IS NULL OR l.expires_ms < l.claimed_ms + l.max_hold_ms) AND t.tenant = :tenant

-- name: find_queue_knobs
-- primary keys (tenant, queue) and (tenant, name)
SELECT o.queue, coalesce(q.paused, 0), q.ttl_ms, q.max_hold_ms
FROM totals o LEFT JOIN queues q ON q.tenant = o.tenant AND q.name = o.queue
WHERE o.tenant = :tenant ORDER BY o.queue LIMIT :limit

-- name: find_ready_kinds
-- indexes tasks_ready, no further than a claim that finds nothing to take would look, tasks_due and tasks_due_wall; of
-- these few, what a key or the limit of a share holds back is left out by leases_exclusive and the primary key of places
SELECT r.kind, count(*), r.id, min(r.since), r.priority, r.seq, coalesce(r.share, char(1)), r.in_line AND r.exclusive IS NULL
FROM (
    SELECT * FROM (
        SELECT kind, id, updated_wall_ms AS since, priority, seq, share, exclusive, 1 AS in_line
        FROM tasks INDEXED BY tasks_ready
        WHERE tenant = :tenant AND queue = :queue AND state = 'ready' AND delayed = 0
        ORDER BY priority DESC, seq LIMIT :limit)
    UNION ALL
    SELECT * FROM (
        SELECT kind, id, :wall_ms - (:now_ms - due_ms), priority, seq, share, exclusive, 0
        FROM tasks INDEXED BY tasks_due
        WHERE tenant = :tenant AND queue = :queue AND delayed = 1 AND due_ms IS NOT NULL AND due_ms <= :now_ms
            AND state = 'ready'
        ORDER BY due_ms LIMIT :limit)
    UNION ALL
    SELECT * FROM (
        SELECT kind, id, due_wall_ms, priority, seq, share, exclusive, 0
        FROM tasks INDEXED BY tasks_due_wall
        WHERE tenant = :tenant AND queue = :queue AND delayed = 1 AND due_wall_ms IS NOT NULL
            AND due_wall_ms <= :wall_ms AND state = 'ready'
        ORDER BY due_wall_ms LIMIT :limit)) r
WHERE (r.exclusive IS NULL OR NOT EXISTS (
    SELECT 1 FROM leases l INDEXED BY leases_exclusive
    WHERE l.tenant = :tenant AND l.exclusive = r.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL
        AND l.expires_ms > :now_ms))
    AND (:most IS NULL OR r.share IS NULL OR r.share = char(1) OR :most > (
        SELECT count(*) FROM places p CROSS JOIN leases l ON l.token = p.token
        WHERE p.tenant = :tenant AND p.queue = :queue AND p.share = r.share AND l.ended IS NULL
            AND l.expires_ms > :now_ms))
GROUP BY r.kind ORDER BY r.kind

-- name: find_recent_claims
-- primary keys: the newest grants of the store, backwards, then that of leases and tasks once for each kind
SELECT r.queue, r.kind, r.n, r.lapsed, l.claimed_wall_ms, l.ttl_ms, t.priority, t.seq, coalesce(t.share, char(1))
FROM (
    SELECT t.queue, t.kind, count(*) AS n, sum(l.ended IS 'lapsed') AS lapsed, max(l.token) AS newest
    FROM (SELECT * FROM leases ORDER BY token DESC LIMIT :limit) l CROSS JOIN tasks t ON t.seq = l.task_seq
    WHERE l.tenant = :tenant AND l.claimed_wall_ms > :after GROUP BY t.queue, t.kind) r
CROSS JOIN leases l ON l.token = r.newest CROSS JOIN tasks t ON t.seq = l.task_seq
ORDER BY r.queue, r.kind

-- name: find_busy
-- index leases_open
SELECT DISTINCT t.queue, t.kind FROM leases l INDEXED BY leases_open JOIN tasks t ON t.seq = l.task_seq
WHERE l.ended IS NULL AND l.expires_ms > :now_ms AND t.tenant = :tenant ORDER BY t.queue, t.kind

-- name: find_repeated
-- primary keys: the newest grants of the store, backwards; of the few tasks that had many of them, what they kept since
SELECT count(*), r.id, r.queue, r.kind, max(r.n), :wall_ms - r.first_ms FROM (
    SELECT t.seq, t.id, t.queue, t.kind, count(*) AS n, min(l.token) AS first, min(l.claimed_wall_ms) AS first_ms
    FROM (SELECT * FROM leases ORDER BY token DESC LIMIT :limit) l CROSS JOIN tasks t ON t.seq = l.task_seq
    WHERE l.tenant = :tenant AND l.ended IS 'released' AND coalesce(json_extract(l.end_answer, '$.delay_ms'), 0) = 0
        AND (t.state = 'ready' OR t.state = 'leased')
    GROUP BY t.seq) r
WHERE r.n >= :least
    AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.task_seq = r.seq AND c.token >= r.first)
    AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.task_seq = r.seq AND s.token >= r.first)
    AND NOT EXISTS (SELECT 1 FROM artifacts a WHERE a.task_seq = r.seq AND a.token >= r.first)

-- name: find_unknown
-- index effects_unsettled
SELECT count(*), e.id, t.id, :wall_ms - min(e.updated_wall_ms)
FROM effects e INDEXED BY effects_unsettled JOIN tasks t ON t.seq = e.task_seq
WHERE e.tenant = :tenant AND (e.state = 'started' OR e.state = 'unknown') AND e.state = 'unknown'
    AND e.updated_wall_ms <= :before

-- name: find_stalled
-- index tasks_set_aside, whose whole predicate is repeated here; then the primary key of waits
SELECT count(*), w.name, t.id, :wall_ms - min(w.opened_wall_ms)
FROM tasks t INDEXED BY tasks_set_aside JOIN waits w ON w.seq = t.wait_seq
WHERE t.tenant = :tenant AND t.state = 'waiting' AND (t.state = 'waiting' OR t.state = 'failed' OR t.state = 'cancelled')
    AND (w.kind = 'approval' OR w.kind = 'signal') AND w.due_wall_ms IS NULL AND w.opened_wall_ms <= :before

-- name: find_unanswered
-- index tasks_unanswered
SELECT count(*), t.waiting_for, t.id, :wall_ms - min(t.due_wall_ms)
FROM tasks t INDEXED BY tasks_unanswered
WHERE t.state = 'waiting' AND t.due_wall_ms IS NOT NULL AND t.due_wall_ms <= :before AND t.tenant = :tenant

-- name: find_dead
-- index tasks_set_aside, backwards: the newest dead letters
SELECT queue, code, count(*), id, max(seq) FROM (
    SELECT queue, code, id, seq FROM tasks INDEXED BY tasks_set_aside
    WHERE tenant = :tenant AND state = 'failed' AND (state = 'waiting' OR state = 'failed' OR state = 'cancelled')
        AND updated_wall_ms > :after
    ORDER BY seq DESC LIMIT :limit)
GROUP BY queue, code ORDER BY count(*) DESC, queue, code

-- name: find_samples
-- primary keys: the newest grants of the store, backwards
SELECT t.queue, l.ttl_ms, l.max_hold_ms, l.ended, coalesce(l.ended_ms, l.beat_ms) - l.claimed_ms, l.took_over IS NOT NULL,
    coalesce(b.n, 0), b.least_left_ms, l.expires_ms - l.ended_ms, l.expires_ms - l.claimed_ms, l.end_digest
FROM (SELECT * FROM leases ORDER BY token DESC LIMIT :limit) l
CROSS JOIN tasks t ON t.seq = l.task_seq LEFT JOIN late_beats b ON b.token = l.token
WHERE l.tenant = :tenant AND (:queue IS NULL OR t.queue = :queue)

-- name: find_late_holders
-- primary keys: the feed of refused writes is bounded; of each lease the write that came first after its expiry. Whose
-- work stood still had heartbeats, and was not late
SELECT t.queue, l.ttl_ms, min(r.late_ms)
FROM (SELECT * FROM rejections ORDER BY seq DESC LIMIT :limit) r
CROSS JOIN tasks t ON t.seq = r.task_seq CROSS JOIN leases l ON l.token = r.token
WHERE r.tenant = :tenant AND r.late_ms IS NOT NULL AND (:queue IS NULL OR t.queue = :queue) AND l.ended IS 'lapsed'
    AND l.end_digest IS NOT :silent AND (l.max_hold_ms IS NULL OR l.expires_ms < l.claimed_ms + l.max_hold_ms)
GROUP BY r.token ORDER BY r.token DESC
