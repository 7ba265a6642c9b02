-- Fair turns and limits of queues. Only claims of a queue that has shares or limits run these, under the lock of its
-- row, and whoever looks; each block says which index keeps it quick.

-- name: lock_all_tasks
-- the table; once for each queue, when its first task with a share comes: whoever submits beside it has either ended, and
-- its tasks are seen, or has not begun, and will see that there are shares
LOCK TABLE relet.tasks IN SHARE ROW EXCLUSIVE MODE

-- name: wait_for_takers
-- the table; when the leases of a queue begin to be counted: whoever takes tasks without having seen that has either ended,
-- and its leases are seen, or has not begun, and will see it. Reads go on
LOCK TABLE relet.tasks IN EXCLUSIVE MODE

-- name: open_shares
-- primary key (tenant, name), and that of tasks, at its end; under the lock above
INSERT INTO relet.queues AS q (tenant, name, paused, shared_from)
VALUES (:tenant, :queue, false, (SELECT coalesce(max(seq), 0) + 1 FROM relet.tasks))
ON CONFLICT (tenant, name) DO UPDATE SET shared_from = excluded.shared_from WHERE q.shared_from IS NULL

-- name: lock_turns
-- index tasks_share: one seek finds the next share, one its first task, however many either has; a share at its limit
-- is passed over by counting its places, which are no more than the limit and what ended since. Of a share whose first
-- task somebody else has locked, the next one is taken
WITH RECURSIVE turns (share) AS (
    SELECT (
        SELECT t.share FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.share IS NOT NULL AND t.state = 'ready' AND NOT t.delayed
            AND t.share > :after
        ORDER BY t.share LIMIT 1)
    UNION ALL
    SELECT (
        SELECT t.share FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.share IS NOT NULL AND t.state = 'ready' AND NOT t.delayed
            AND t.share > turns.share
        ORDER BY t.share LIMIT 1)
    FROM turns WHERE turns.share IS NOT NULL),
held AS MATERIALIZED (
    SELECT (SELECT i.input FROM relet.inputs i WHERE i.task_seq = f.seq), f.*
    FROM turns CROSS JOIN LATERAL (
        SELECT t.* FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.share = turns.share AND t.share IS NOT NULL
            AND t.state = 'ready' AND NOT t.delayed
            AND (:kinds::text IS NULL OR t.kind = ANY (ARRAY(SELECT jsonb_array_elements_text(:kinds::jsonb))))
            AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
            AND {free}
        ORDER BY t.priority DESC, t.seq LIMIT 1 FOR UPDATE OF t SKIP LOCKED) f
    WHERE turns.share IS NOT NULL AND (:most::bigint IS NULL OR turns.share = chr(1) OR :most > (
        SELECT count(*) FROM relet.places p JOIN relet.leases l ON l.token = p.token
        WHERE p.tenant = :tenant AND p.queue = :queue AND p.share = turns.share AND l.ended IS NULL))
    LIMIT :limit)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.share

-- name: lock_before_shares
-- index tasks_ready: one seek for each priority, then the first of it that is older than the first share; passes over
-- what others have locked
WITH RECURSIVE levels (priority) AS (
    (SELECT t.priority FROM relet.tasks t
    WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND NOT t.delayed
    ORDER BY t.priority DESC LIMIT 1)
    UNION ALL
    SELECT below.priority FROM levels CROSS JOIN LATERAL (
        SELECT t.priority FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND NOT t.delayed
            AND t.priority < levels.priority
        ORDER BY t.priority DESC LIMIT 1) below),
held AS MATERIALIZED (
    SELECT i.input, t.* FROM levels CROSS JOIN LATERAL (
        SELECT t.* FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND NOT t.delayed
            AND t.priority = levels.priority AND t.seq < :shared_from AND t.share IS NULL
            AND (:kinds::text IS NULL OR t.kind = ANY (ARRAY(SELECT jsonb_array_elements_text(:kinds::jsonb))))
            AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
            AND {free}
        ORDER BY t.seq LIMIT 1 FOR UPDATE OF t SKIP LOCKED) t
    JOIN relet.inputs i ON i.task_seq = t.seq
    LIMIT 1)
SELECT held.*, {clock} FROM held

-- name: note_turn
-- primary key (tenant, name)
UPDATE relet.queues SET last_share = :last_share, full_us = :full_us WHERE tenant = :tenant AND name = :queue

-- name: take_place
-- primary key (tenant, queue, share, token)
INSERT INTO relet.places (tenant, queue, share, token) VALUES (:tenant, :queue, :share, :token)

-- name: clear_places
-- primary key (tenant, queue, share, token), then that of leases for each; of one share, or of the whole queue
DELETE FROM relet.places p WHERE p.tenant = :tenant AND p.queue = :queue
    AND (:share::text IS NULL OR p.share = :share)
    AND NOT EXISTS (SELECT 1 FROM relet.leases l WHERE l.token = p.token AND l.ended IS NULL)

-- name: clear_all_places
-- the whole of a small table: leases of queues with a limit, and what ended since the last look
DELETE FROM relet.places p
WHERE NOT EXISTS (SELECT 1 FROM relet.leases l WHERE l.token = p.token AND l.ended IS NULL)

-- name: count_places
-- primary key (tenant, queue, share, token)
SELECT count(*) FROM relet.places
WHERE tenant = :tenant AND queue = :queue AND (:share::text IS NULL OR share = :share)

-- name: count_live_places
-- primary key (tenant, queue, share, token), then that of leases for each
SELECT count(*) FROM relet.places p JOIN relet.leases l ON l.token = p.token
WHERE p.tenant = :tenant AND p.queue = :queue AND (:share::text IS NULL OR p.share = :share)
    AND l.ended IS NULL AND l.expires_ms > :now_ms

-- name: fill_places
-- index leases_open: leases that were granted before there was a limit; once for each change of a limit
INSERT INTO relet.places (tenant, queue, share, token)
SELECT t.tenant, t.queue, coalesce(t.share, chr(1)), l.token
FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
WHERE l.ended IS NULL AND l.tenant = :tenant AND t.queue = :queue
ON CONFLICT DO NOTHING

-- name: drop_places
-- primary key (tenant, queue, share, token)
DELETE FROM relet.places WHERE tenant = :tenant AND queue = :queue

-- name: find_queues
-- primary keys of queues and totals, in pages
SELECT name FROM relet.queues WHERE tenant = :tenant AND name > :after
UNION SELECT queue FROM relet.totals WHERE tenant = :tenant AND queue > :after
ORDER BY 1 LIMIT :limit

-- name: count_leased_of
-- index leases_open: those of this queue that are not recorded as ended, and those that have not expired; asked by
-- whoever looks, never by a claim
SELECT count(*), count(*) FILTER (WHERE l.expires_ms > :now_ms)
FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
WHERE l.ended IS NULL AND l.tenant = :tenant AND t.queue = :queue
