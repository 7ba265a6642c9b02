-- Statements of who looks at the store as a whole: figures, its health, what its leases have taken. They only read; each
-- block says which index keeps it from the finished tasks, or how far it goes at most.

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
SELECT queue, submitted, takeovers FROM totals WHERE tenant = :tenant AND (:queue IS NULL OR queue = :queue)

-- name: count_reconciling
-- index waits_reconciling, then primary keys: the few for which a person must find out what happened
SELECT t.queue, count(*) FROM waits w INDEXED BY waits_reconciling JOIN tasks t ON t.seq = w.task_seq
WHERE w.kind = 'reconcile' AND w.decision IS NULL AND w.tenant = :tenant AND t.wait_seq = w.seq
    AND t.state = 'waiting' AND (:queue IS NULL OR t.queue = :queue)
GROUP BY t.queue
