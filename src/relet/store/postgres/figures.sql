-- Statements of who looks at the store as a whole: figures, its health, what its leases have taken. They only read, and
-- lock nothing; each block says which index keeps it from the finished tasks, or how far it goes at most. What answers
-- one row, whatever is found, is joined to a row that is always there. Leases are asked for their tenant, and not their
-- tasks: else PostgreSQL might begin with all tasks of the tenant.

-- name: find_tenants
-- primary keys (tenant, queue, slot) of totals and (tenant, name) of queues: two seeks for each tenant, and its queues
-- counted
WITH RECURSIVE names (name, n) AS (
    SELECT (SELECT min(s.tenant) FROM (
        SELECT min(tenant) AS tenant FROM relet.totals WHERE tenant > :after
        UNION ALL SELECT min(tenant) FROM relet.queues WHERE tenant > :after) s), 1
    UNION ALL
    SELECT (SELECT min(s.tenant) FROM (
        SELECT min(tenant) AS tenant FROM relet.totals WHERE tenant > names.name
        UNION ALL SELECT min(tenant) FROM relet.queues WHERE tenant > names.name) s), names.n + 1
    FROM names WHERE names.name IS NOT NULL AND names.n < :limit)
SELECT names.name, (
    SELECT count(*) FROM (
        SELECT queue FROM relet.totals WHERE tenant = names.name
        UNION SELECT name FROM relet.queues WHERE tenant = names.name) q)
FROM names WHERE names.name IS NOT NULL ORDER BY names.name

-- name: count_rejections
-- primary key (tenant, reason)
SELECT reason, n FROM relet.rejection_counts WHERE tenant = :tenant ORDER BY reason

-- name: count_ready
-- index tasks_ready
SELECT queue, count(*) FROM relet.tasks
WHERE tenant = :tenant AND (:queue::text IS NULL OR queue = :queue) AND state = 'ready' AND NOT delayed GROUP BY queue

-- name: count_delayed
-- indexes tasks_due and tasks_due_wall
SELECT d.queue, count(*) FROM (
    SELECT queue FROM relet.tasks
    WHERE tenant = :tenant AND (:queue::text IS NULL OR queue = :queue) AND delayed AND due_ms IS NOT NULL
        AND state = 'ready'
    UNION ALL
    SELECT queue FROM relet.tasks
    WHERE tenant = :tenant AND (:queue::text IS NULL OR queue = :queue) AND delayed AND due_wall_ms IS NOT NULL
        AND state = 'ready') d
GROUP BY d.queue

-- name: count_leased
-- index leases_open
SELECT t.queue, count(*), count(*) FILTER (WHERE l.expires_ms > :now_ms),
    count(*) FILTER (WHERE l.expires_ms > :now_ms AND l.beat_ms + l.ttl_ms / 3 < :now_ms)
FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
WHERE l.ended IS NULL AND l.tenant = :tenant AND (:queue::text IS NULL OR t.queue = :queue) GROUP BY t.queue

-- name: count_set_aside
-- index tasks_set_aside
SELECT queue, state, count(*) FROM relet.tasks
WHERE tenant = :tenant AND (:queue::text IS NULL OR queue = :queue)
    AND (state = 'waiting' OR state = 'failed' OR state = 'cancelled')
GROUP BY queue, state

-- name: count_totals
-- primary key (tenant, queue, slot), its slots added up
SELECT queue, sum(submitted)::bigint, sum(takeovers)::bigint, sum(pruned_failed)::bigint,
    sum(pruned_undone - pruned_failed)::bigint
FROM relet.totals WHERE tenant = :tenant AND (:queue::text IS NULL OR queue = :queue) GROUP BY queue

-- name: count_reconciling
-- index waits_reconciling, then primary keys: the few for which a person must find out what happened
SELECT t.queue, count(*) FROM relet.waits w JOIN relet.tasks t ON t.seq = w.task_seq
WHERE w.kind = 'reconcile' AND w.decision IS NULL AND w.tenant = :tenant AND t.wait_seq = w.seq
    AND t.state = 'waiting' AND (:queue::text IS NULL OR t.queue = :queue)
GROUP BY t.queue

-- name: find_lapsed
-- index leases_open: the few that are held, and of them those that expired more than half a ttl ago
SELECT coalesce(f.n, 0), f.id, f.queue, f.holder, f.token, f.ttl_ms, :now_ms - f.expires_ms
FROM (VALUES (1)) one LEFT JOIN (
    SELECT count(*) OVER () AS n, t.id, t.queue, l.holder, l.token, l.ttl_ms, l.expires_ms
    FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.ended IS NULL AND l.expires_ms + l.ttl_ms / 2 <= :now_ms AND l.tenant = :tenant
    ORDER BY l.expires_ms, l.token LIMIT 1) f ON true

-- name: find_quiet
-- index leases_open; one that is held to the end of its max_hold is not renewed any more, and all is well
SELECT coalesce(f.n, 0), f.id, f.queue, f.holder, f.token, f.ttl_ms, f.left_ms, f.share
FROM (VALUES (1)) one LEFT JOIN (
    SELECT count(*) OVER () AS n, t.id, t.queue, l.holder, l.token, l.ttl_ms, l.expires_ms - :now_ms AS left_ms,
        (l.expires_ms - :now_ms) * 1000 / l.ttl_ms AS share
    FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.ended IS NULL AND l.expires_ms > :now_ms AND (l.expires_ms - :now_ms) * 3 < l.ttl_ms AND NOT l.cancelling
        AND (l.max_hold_ms IS NULL OR l.expires_ms < l.claimed_ms + l.max_hold_ms) AND l.tenant = :tenant
    ORDER BY share, l.token LIMIT 1) f ON true

-- name: find_queue_knobs
-- primary keys (tenant, queue, slot) and (tenant, name)
SELECT o.queue, coalesce(q.paused, false), q.ttl_ms, q.max_hold_ms
FROM (SELECT DISTINCT tenant, queue FROM relet.totals WHERE tenant = :tenant) o
LEFT JOIN relet.queues q ON q.tenant = o.tenant AND q.name = o.queue
ORDER BY o.queue LIMIT :limit

-- name: find_ready_kinds
-- indexes tasks_ready, no further than a claim that finds nothing to take would look, tasks_due and tasks_due_wall; of
-- these few, what a key or the limit of a share holds back is left out by leases_exclusive and the primary key of
-- places; the one that has waited longest stands for its kind
SELECT DISTINCT ON (r.kind) r.kind, count(*) OVER (PARTITION BY r.kind), r.id, r.since, r.priority, r.seq,
    coalesce(r.share, chr(1)), r.in_line AND r.exclusive IS NULL
FROM (
    (SELECT kind, id, updated_wall_ms AS since, priority, seq, share, exclusive, true AS in_line
    FROM relet.tasks
    WHERE tenant = :tenant AND queue = :queue AND state = 'ready' AND NOT delayed
    ORDER BY priority DESC, seq LIMIT :limit)
    UNION ALL
    (SELECT kind, id, :wall_ms - (:now_ms - due_ms), priority, seq, share, exclusive, false
    FROM relet.tasks
    WHERE tenant = :tenant AND queue = :queue AND delayed AND due_ms IS NOT NULL AND due_ms <= :now_ms
        AND state = 'ready'
    ORDER BY due_ms LIMIT :limit)
    UNION ALL
    (SELECT kind, id, due_wall_ms, priority, seq, share, exclusive, false
    FROM relet.tasks
    WHERE tenant = :tenant AND queue = :queue AND delayed AND due_wall_ms IS NOT NULL AND due_wall_ms <= :wall_ms
        AND state = 'ready'
    ORDER BY due_wall_ms LIMIT :limit)) r
WHERE (r.exclusive IS NULL OR NOT EXISTS (
    SELECT 1 FROM relet.leases l
    WHERE l.tenant = :tenant AND l.exclusive = r.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL
        AND l.expires_ms > :now_ms))
    AND (:most::bigint IS NULL OR r.share IS NULL OR r.share = chr(1) OR :most > (
        SELECT count(*) FROM relet.places p JOIN relet.leases l ON l.token = p.token
        WHERE p.tenant = :tenant AND p.queue = :queue AND p.share = r.share AND l.ended IS NULL
            AND l.expires_ms > :now_ms))
ORDER BY r.kind, r.since, r.in_line DESC, r.priority DESC, r.seq

-- name: find_recent_claims
-- primary keys: the newest grants of the store, backwards, then that of leases and tasks once for each kind
SELECT r.queue, r.kind, r.n, r.lapsed, l.claimed_wall_ms, l.ttl_ms, t.priority, t.seq, coalesce(t.share, chr(1))
FROM (
    SELECT t.queue, t.kind, count(*) AS n, count(*) FILTER (WHERE l.ended = 'lapsed') AS lapsed,
        max(l.token) AS newest
    FROM (SELECT * FROM relet.leases ORDER BY token DESC LIMIT :limit) l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.tenant = :tenant AND l.claimed_wall_ms > :after GROUP BY t.queue, t.kind) r
JOIN relet.leases l ON l.token = r.newest JOIN relet.tasks t ON t.seq = l.task_seq
ORDER BY r.queue, r.kind

-- name: find_busy
-- index leases_open
SELECT DISTINCT t.queue, t.kind FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
WHERE l.ended IS NULL AND l.expires_ms > :now_ms AND l.tenant = :tenant ORDER BY t.queue, t.kind

-- name: find_repeated
-- primary keys: the newest grants of the store, backwards; of the few tasks that had many of them, what they kept since
WITH given_back AS (
    SELECT t.seq, t.id, t.queue, t.kind, count(*) AS n, min(l.token) AS first, min(l.claimed_wall_ms) AS first_ms
    FROM (SELECT * FROM relet.leases ORDER BY token DESC LIMIT :limit) l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.tenant = :tenant AND l.ended = 'released'
        AND coalesce((l.end_answer::jsonb ->> 'delay_ms')::bigint, 0) = 0
        AND (t.state = 'ready' OR t.state = 'leased')
    GROUP BY t.seq, t.id, t.queue, t.kind)
SELECT coalesce(f.found, 0), f.id, f.queue, f.kind, f.n, :wall_ms - f.first_ms
FROM (VALUES (1)) one LEFT JOIN (
    SELECT count(*) OVER () AS found, r.*
    FROM given_back r
    WHERE r.n >= :least
        AND NOT EXISTS (SELECT 1 FROM relet.checkpoints c WHERE c.task_seq = r.seq AND c.token >= r.first)
        AND NOT EXISTS (SELECT 1 FROM relet.steps s WHERE s.task_seq = r.seq AND s.token >= r.first)
        AND NOT EXISTS (SELECT 1 FROM relet.artifacts a WHERE a.task_seq = r.seq AND a.token >= r.first)
    ORDER BY r.n DESC, r.seq LIMIT 1) f ON true

-- name: find_unknown
-- index effects_unsettled, whose predicate is implied by one of its states
SELECT coalesce(f.n, 0), f.effect, f.task, :wall_ms - f.updated_wall_ms
FROM (VALUES (1)) one LEFT JOIN (
    SELECT count(*) OVER () AS n, e.id AS effect, t.id AS task, e.updated_wall_ms
    FROM relet.effects e JOIN relet.tasks t ON t.seq = e.task_seq
    WHERE e.tenant = :tenant AND e.state = 'unknown' AND e.updated_wall_ms <= :before
    ORDER BY e.updated_wall_ms, e.seq LIMIT 1) f ON true

-- name: find_stalled
-- index tasks_set_aside, whose predicate is implied by one of its states; then the primary key of waits
SELECT coalesce(f.n, 0), f.name, f.id, :wall_ms - f.opened_wall_ms
FROM (VALUES (1)) one LEFT JOIN (
    SELECT count(*) OVER () AS n, w.name, t.id, w.opened_wall_ms
    FROM relet.tasks t JOIN relet.waits w ON w.seq = t.wait_seq
    WHERE t.tenant = :tenant AND t.state = 'waiting' AND (w.kind = 'approval' OR w.kind = 'signal')
        AND w.due_wall_ms IS NULL AND w.opened_wall_ms <= :before
    ORDER BY w.opened_wall_ms, t.seq LIMIT 1) f ON true

-- name: find_unanswered
-- index tasks_unanswered
SELECT coalesce(f.n, 0), f.waiting_for, f.id, :wall_ms - f.due_wall_ms
FROM (VALUES (1)) one LEFT JOIN (
    SELECT count(*) OVER () AS n, t.waiting_for, t.id, t.due_wall_ms
    FROM relet.tasks t
    WHERE t.state = 'waiting' AND t.due_wall_ms IS NOT NULL AND t.due_wall_ms <= :before AND t.tenant = :tenant
    ORDER BY t.due_wall_ms, t.seq LIMIT 1) f ON true

-- name: find_dead
-- index tasks_set_aside, backwards: the newest dead letters
SELECT d.queue, d.code, count(*), (array_agg(d.id ORDER BY d.seq DESC))[1], max(d.seq) FROM (
    SELECT queue, code, id, seq FROM relet.tasks
    WHERE tenant = :tenant AND state = 'failed' AND updated_wall_ms > :after
    ORDER BY seq DESC LIMIT :limit) d
GROUP BY d.queue, d.code ORDER BY count(*) DESC, d.queue, d.code COLLATE "C" NULLS FIRST

-- name: find_samples
-- primary keys: the newest grants of the store, backwards
SELECT t.queue, l.ttl_ms, l.max_hold_ms, l.ended, coalesce(l.ended_ms, l.beat_ms) - l.claimed_ms,
    l.took_over IS NOT NULL, coalesce(b.n, 0), b.least_left_ms, l.expires_ms - l.ended_ms,
    l.expires_ms - l.claimed_ms, l.end_digest
FROM (SELECT * FROM relet.leases ORDER BY token DESC LIMIT :limit) l
JOIN relet.tasks t ON t.seq = l.task_seq LEFT JOIN relet.late_beats b ON b.token = l.token
WHERE l.tenant = :tenant AND (:queue::text IS NULL OR t.queue = :queue) ORDER BY l.token DESC

-- name: find_late_holders
-- primary keys: the feed of refused writes is bounded; of each lease the write that came first after its expiry. Whose
-- work stood still had heartbeats, and was not late
SELECT t.queue, l.ttl_ms, min(r.late_ms)
FROM (SELECT * FROM relet.rejections ORDER BY seq DESC LIMIT :limit) r
JOIN relet.tasks t ON t.seq = r.task_seq JOIN relet.leases l ON l.token = r.token
WHERE r.tenant = :tenant AND r.late_ms IS NOT NULL AND (:queue::text IS NULL OR t.queue = :queue)
    AND l.ended = 'lapsed' AND l.end_digest IS DISTINCT FROM :silent
    AND (l.max_hold_ms IS NULL OR l.expires_ms < l.claimed_ms + l.max_hold_ms)
GROUP BY r.token, t.queue, l.ttl_ms ORDER BY r.token DESC
