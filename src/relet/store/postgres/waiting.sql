-- What workers ask that have nothing to do: reads alone, each block with the indexes that keep it quick.

-- name: find_waiting
-- indexes tasks_ready, tasks_due, tasks_due_wall and the primary key of queues: a seek each
SELECT
    EXISTS (
        SELECT 1 FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND NOT t.delayed
            AND (:kinds::text IS NULL OR t.kind = ANY (ARRAY(SELECT jsonb_array_elements_text(:kinds::jsonb))))
            AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
            AND {free}),
    (SELECT min(t.due_ms) FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed AND t.due_ms IS NOT NULL),
    (SELECT min(t.due_wall_ms) FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed AND t.due_wall_ms IS NOT NULL),
    coalesce((SELECT q.paused FROM relet.queues q WHERE q.tenant = :tenant AND q.name = :queue), false)

-- name: find_stirred
-- indexes tasks_ready, tasks_due and tasks_due_wall: up to three seeks for each queue
SELECT q.value FROM jsonb_array_elements_text(:queues::jsonb) AS q (value)
WHERE EXISTS (SELECT 1 FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = q.value AND t.state = 'ready' AND NOT t.delayed)
    OR EXISTS (SELECT 1 FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = q.value AND t.delayed AND t.due_ms IS NOT NULL)
    OR EXISTS (SELECT 1 FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = q.value AND t.delayed AND t.due_wall_ms IS NOT NULL)

-- name: find_next_lapse
-- index leases_open: those whose time to be looked at has come, which a sweep keeps few; then one seek
SELECT least(
    (SELECT min(l.expires_ms) FROM relet.leases l WHERE l.ended IS NULL AND l.check_ms <= :now_ms),
    (SELECT min(l.check_ms) FROM relet.leases l WHERE l.ended IS NULL AND l.check_ms > :now_ms))
