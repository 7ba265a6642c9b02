-- Fair turns and limits of queues. Only claims of a queue that has shares or limits run these, inside BEGIN IMMEDIATE;
-- each block says which index keeps it quick.

-- name: open_shares
-- primary keys (tenant, name) and of tasks, at its end; once for each queue, when its first task with a share comes
INSERT INTO queues (tenant, name, paused, shared_from)
VALUES (:tenant, :queue, 0, (SELECT coalesce(max(seq), 0) + 1 FROM tasks))
ON CONFLICT (tenant, name) DO UPDATE SET shared_from = excluded.shared_from WHERE shared_from IS NULL

-- name: lock_turns
-- index tasks_share: one seek finds the next share, one its first task, however many either has; a share at its limit
-- is passed over by counting its places, which are no more than the limit and what ended since
WITH RECURSIVE turns (share) AS (
    SELECT (
        SELECT t.share FROM tasks t INDEXED BY tasks_share
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.share IS NOT NULL AND t.state = 'ready' AND t.delayed = 0
            AND t.share > :after
        ORDER BY t.share LIMIT 1)
    UNION ALL
    SELECT (
        SELECT t.share FROM tasks t INDEXED BY tasks_share
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.share IS NOT NULL AND t.state = 'ready' AND t.delayed = 0
            AND t.share > turns.share
        ORDER BY t.share LIMIT 1)
    FROM turns WHERE turns.share IS NOT NULL)
SELECT i.input, t.* FROM turns CROSS JOIN tasks t ON t.seq = (
    SELECT t.seq FROM tasks t INDEXED BY tasks_share
    WHERE t.tenant = :tenant AND t.queue = :queue AND t.share = turns.share AND t.share IS NOT NULL
        AND t.state = 'ready' AND t.delayed = 0
        AND (:kinds IS NULL OR t.kind IN (SELECT value FROM json_each(:kinds)))
        AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
        AND (t.exclusive IS NULL OR NOT EXISTS (
            SELECT 1 FROM leases l INDEXED BY leases_exclusive
            WHERE l.tenant = t.tenant AND l.exclusive = t.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL
                AND l.expires_ms > :now_ms))
    ORDER BY t.priority DESC, t.seq LIMIT 1)
CROSS JOIN inputs i ON i.task_seq = t.seq
WHERE turns.share IS NOT NULL AND (:most IS NULL OR turns.share = char(1) OR :most > (
    SELECT count(*) FROM places p CROSS JOIN leases l ON l.token = p.token
    WHERE p.tenant = :tenant AND p.queue = :queue AND p.share = turns.share AND l.ended IS NULL))
LIMIT :limit

-- name: lock_before_shares
-- index tasks_ready: one seek for each priority, then those of it that are older than the first share, in their order
WITH RECURSIVE levels (priority) AS (
    SELECT (
        SELECT t.priority FROM tasks t INDEXED BY tasks_ready
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND t.delayed = 0
        ORDER BY t.priority DESC LIMIT 1)
    UNION ALL
    SELECT (
        SELECT t.priority FROM tasks t INDEXED BY tasks_ready
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND t.delayed = 0
            AND t.priority < levels.priority
        ORDER BY t.priority DESC LIMIT 1)
    FROM levels WHERE levels.priority IS NOT NULL)
SELECT i.input, t.* FROM levels CROSS JOIN tasks t INDEXED BY tasks_ready CROSS JOIN inputs i ON i.task_seq = t.seq
WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND t.delayed = 0
    AND t.priority = levels.priority AND t.seq < :shared_from
    AND (:kinds IS NULL OR t.kind IN (SELECT value FROM json_each(:kinds)))
    AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > :wall_ms)
    AND (t.exclusive IS NULL OR NOT EXISTS (
        SELECT 1 FROM leases l INDEXED BY leases_exclusive
        WHERE l.tenant = t.tenant AND l.exclusive = t.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL
            AND l.expires_ms > :now_ms))
LIMIT 1

-- name: note_turn
-- primary key (tenant, name)
UPDATE queues SET last_share = :last_share, full_us = :full_us WHERE tenant = :tenant AND name = :queue

-- name: take_place
-- primary key (tenant, queue, share, token)
INSERT INTO places (tenant, queue, share, token) VALUES (:tenant, :queue, :share, :token)

-- name: clear_places
-- primary key (tenant, queue, share, token), then that of leases for each; of one share, or of the whole queue
DELETE FROM places WHERE tenant = :tenant AND queue = :queue
    AND share BETWEEN coalesce(:share, '') AND coalesce(:share, char(1114111))
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.token = places.token AND l.ended IS NULL)

-- name: clear_all_places
-- the whole of a small table: leases of queues with a limit, and what ended since the last look
DELETE FROM places WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.token = places.token AND l.ended IS NULL)

-- name: count_places
-- primary key (tenant, queue, share, token)
SELECT count(*) FROM places WHERE tenant = :tenant AND queue = :queue
    AND share BETWEEN coalesce(:share, '') AND coalesce(:share, char(1114111))

-- name: count_live_places
-- primary key (tenant, queue, share, token), then that of leases for each
SELECT count(*) FROM places p CROSS JOIN leases l ON l.token = p.token
WHERE p.tenant = :tenant AND p.queue = :queue
    AND p.share BETWEEN coalesce(:share, '') AND coalesce(:share, char(1114111))
    AND l.ended IS NULL AND l.expires_ms > :now_ms

-- name: fill_places
-- index leases_open: leases that were granted before there was a limit; once for each change of a limit
INSERT INTO places (tenant, queue, share, token)
SELECT t.tenant, t.queue, coalesce(t.share, char(1)), l.token
FROM leases l INDEXED BY leases_open JOIN tasks t ON t.seq = l.task_seq
WHERE l.ended IS NULL AND t.tenant = :tenant AND t.queue = :queue
ON CONFLICT DO NOTHING

-- name: drop_places
-- primary key (tenant, queue, share, token)
DELETE FROM places WHERE tenant = :tenant AND queue = :queue

-- name: find_queues
-- primary keys of queues and totals, in pages
SELECT name FROM queues WHERE tenant = :tenant AND name > :after
UNION SELECT queue FROM totals WHERE tenant = :tenant AND queue > :after
ORDER BY 1 LIMIT :limit

-- name: count_leased_of
-- index leases_open: those of this queue that are not recorded as ended, and those that have not expired; asked by
-- whoever looks, never by a claim
SELECT count(*), coalesce(sum(l.expires_ms > :now_ms), 0)
FROM leases l INDEXED BY leases_open JOIN tasks t ON t.seq = l.task_seq
WHERE l.ended IS NULL AND t.tenant = :tenant AND t.queue = :queue
