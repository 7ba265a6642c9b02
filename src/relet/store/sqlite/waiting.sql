-- What workers ask that have nothing to do: reads alone, each block with the indexes that keep it quick.

-- name: find_waiting
-- indexes tasks_ready, tasks_due, tasks_due_wall and the primary key of queues: a seek each
SELECT
    EXISTS (
        SELECT 1 FROM tasks t INDEXED BY tasks_ready
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND t.delayed = 0
            AND (:kinds IS NULL OR t.kind IN (SELECT value FROM json_each(:kinds)))
            AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
            AND (t.exclusive IS NULL OR NOT EXISTS (
                SELECT 1 FROM leases l INDEXED BY leases_exclusive
                WHERE l.tenant = t.tenant AND l.exclusive = t.exclusive AND l.exclusive IS NOT NULL
                    AND l.ended IS NULL AND l.expires_ms > :now_ms))),
    (SELECT min(t.due_ms) FROM tasks t INDEXED BY tasks_due
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed = 1 AND t.due_ms IS NOT NULL),
    (SELECT min(t.due_wall_ms) FROM tasks t INDEXED BY tasks_due_wall
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed = 1 AND t.due_wall_ms IS NOT NULL),
    coalesce((SELECT q.paused FROM queues q WHERE q.tenant = :tenant AND q.name = :queue), 0)

-- name: find_stirred
-- indexes tasks_ready, tasks_due and tasks_due_wall: up to three seeks for each queue
SELECT q.value FROM json_each(:queues) q
WHERE EXISTS (SELECT 1 FROM tasks t INDEXED BY tasks_ready
        WHERE t.tenant = :tenant AND t.queue = q.value AND t.state = 'ready' AND t.delayed = 0)
    OR EXISTS (SELECT 1 FROM tasks t INDEXED BY tasks_due
        WHERE t.tenant = :tenant AND t.queue = q.value AND t.delayed = 1 AND t.due_ms IS NOT NULL)
    OR EXISTS (SELECT 1 FROM tasks t INDEXED BY tasks_due_wall
        WHERE t.tenant = :tenant AND t.queue = q.value AND t.delayed = 1 AND t.due_wall_ms IS NOT NULL)

-- name: find_next_lapse
-- index leases_open: those whose time to be looked at has come, which a sweep keeps few; then one seek
SELECT min(ms) FROM (
    SELECT min(l.expires_ms) AS ms FROM leases l INDEXED BY leases_open WHERE l.ended IS NULL AND l.check_ms <= :now_ms
    UNION ALL
    SELECT min(l.check_ms) FROM leases l INDEXED BY leases_open WHERE l.ended IS NULL AND l.check_ms > :now_ms)
