-- Hot verbs for many at once: what is else written row by row, in one statement for all rows, which come as JSON arrays of
-- values in the order that the row by row statements list. Each stands under the locks that those stand under.

-- name: insert_lease_all
-- primary key, indexes leases_open and leases_task
INSERT INTO relet.leases
SELECT
    (r ->> 0)::bigint, (r ->> 1)::bigint, (r ->> 2), (r ->> 3), (r ->> 4)::integer, (r ->> 5)::bigint,
    (r ->> 6)::bigint, (r ->> 7)::bigint, (r ->> 8)::integer, (r ->> 9)::integer, (r ->> 10)::bigint,
    (r ->> 11)::bigint, (r ->> 12), (r ->> 13)::bigint, (r ->> 14)::bigint, (r ->> 15)::bigint, (r ->> 16)::bigint,
    (r ->> 17)::bigint, (r ->> 18)::bigint, (r ->> 19)::boolean, (r ->> 20)::boolean, (r ->> 21), (r ->> 22),
    (r ->> 23), (r ->> 24)::bigint, (r ->> 25), (r ->> 26)::bigint, (r ->> 27)::bigint, (r ->> 28), (r ->> 29)
FROM jsonb_array_elements(:rows::jsonb) r

-- name: add_event_all
-- primary key, whose numbers are drawn here; index events_task
INSERT INTO relet.events (task_seq, kind, state, token, holder, at_ms, wall_ms, detail)
SELECT
    (r ->> 1)::bigint, (r ->> 3), (r ->> 4), (r ->> 5)::bigint, (r ->> 6), (r ->> 7)::bigint, (r ->> 8)::bigint,
    (r ->> 9)
FROM jsonb_array_elements(:rows::jsonb) WITH ORDINALITY AS a (r, n) ORDER BY n

-- name: take_task_all
-- primary key, for each
UPDATE relet.tasks t SET state = r ->> 0, token = (r ->> 1)::bigint, updated_wall_ms = (r ->> 2)::bigint
FROM jsonb_array_elements(:rows::jsonb) r WHERE t.seq = (r ->> 4)::bigint

-- name: end_lease_all
-- primary key, for each
UPDATE relet.leases l SET
    ended = r ->> 0, ended_ms = (r ->> 1)::bigint, ended_wall_ms = (r ->> 2)::bigint, end_digest = r ->> 3,
    end_answer = r ->> 4
FROM jsonb_array_elements(:rows::jsonb) r WHERE l.token = (r ->> 5)::bigint AND l.ended IS NULL

-- name: complete_task_all
-- primary key, for each
UPDATE relet.tasks t SET
    state = r ->> 0, error = r ->> 1, code = r ->> 2, reason = r ->> 3, result = r ->> 4,
    updated_wall_ms = (r ->> 5)::bigint
FROM jsonb_array_elements(:rows::jsonb) r WHERE t.seq = (r ->> 7)::bigint

-- name: look_endings
-- two primary keys, once for each token, locked in the order of their tasks and answered in that of the tokens. What the
-- rule would do more about than write the end is not answered: what is ended, cancelled, expired, or of a task with open
-- effects
WITH asked AS MATERIALIZED (
    SELECT a.token::bigint AS token, a.n FROM jsonb_array_elements_text(:tokens::jsonb) WITH ORDINALITY AS a (token, n)),
held AS MATERIALIZED (
    SELECT l.token, l.task_seq, l.holder, l.expires_ms FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.token = ANY (ARRAY(SELECT token FROM asked)) AND l.tenant = :tenant
        AND l.ended IS NULL AND NOT l.cancelling AND t.state = 'leased' AND t.unsettled = 0
    ORDER BY t.seq, l.token FOR UPDATE OF t, l),
clock AS MATERIALIZED (SELECT {now_ms} AS now_ms FROM (SELECT count(*) FROM held) counted)
SELECT h.token, h.task_seq, h.holder, 0, {clock}
FROM clock c CROSS JOIN held h JOIN asked a ON a.token = h.token
WHERE h.expires_ms > c.now_ms ORDER BY a.n

-- name: insert_tasks
-- primary key of tombstones, index tasks_id; answers what was new. Rows that are alike but for id and input
WITH rows AS MATERIALIZED (
    SELECT r ->> 0 AS id, r ->> 1 AS input, n FROM jsonb_array_elements(:rows::jsonb) WITH ORDINALITY AS a (r, n)),
made AS (
    INSERT INTO relet.tasks (
        tenant, id, queue, kind, state, delayed, due_ms, due_wall_ms, priority, attempt, failures, losses, streak,
        token, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses, deadline_wall_ms, exclusive, share, labels,
        created_wall_ms, updated_wall_ms, unsettled, last_event)
    SELECT
        :tenant, rows.id, :queue, :kind, :state, :delayed, :due_ms, :due_wall_ms, :priority, 1, 0, 0, 0, 0, :ttl_ms,
        :timeout_ms, :max_hold_ms, :max_attempts, :max_losses, :deadline_wall_ms, :exclusive, (
            SELECT chr(1) FROM relet.queues q
            WHERE q.tenant = :tenant AND q.name = :queue AND q.shared_from IS NOT NULL),
        :labels, :created_wall_ms, :updated_wall_ms, 0, 0
    FROM rows
    WHERE NOT EXISTS (SELECT 1 FROM relet.tombstones g WHERE g.tenant = :tenant AND g.id = rows.id)
    ORDER BY rows.n
    ON CONFLICT (tenant, id) DO NOTHING
    RETURNING seq, id),
given AS (
    INSERT INTO relet.inputs (task_seq, input)
    SELECT made.seq, rows.input FROM made JOIN rows ON rows.id = made.id),
told AS (
    INSERT INTO relet.events (task_seq, kind, state, token, holder, at_ms, wall_ms, detail)
    SELECT made.seq, 'submitted', :state, NULL, NULL, :at_ms, :updated_wall_ms, :detail FROM made ORDER BY made.seq)
SELECT seq, id FROM made

-- name: claim_one
-- as look_ahead, and then the rows that a plain grant writes, where all is plain: this very run of the server, nothing to
-- be seen to first, a queue without limits, and a task that nobody held before and that wants no key. One row, whatever
-- there is
WITH m AS MATERIALIZED (
    SELECT m.epoch, m.ahead_ms, m.steps, m.min_writer <= :schema AND r.server IS NOT DISTINCT FROM {server} AS is_ours,
        {now_ms} AS now_ms, {wall_ms} AS wall_ms
    FROM relet.meta m LEFT JOIN relet.run r ON r.one = m.one WHERE m.one = 1),
ahead AS MATERIALIZED (
    SELECT m.is_ours AND NOT EXISTS (
            SELECT 1 FROM relet.leases l WHERE l.ended IS NULL AND l.check_ms <= m.now_ms)
        AND NOT EXISTS (
            SELECT 1 FROM relet.tasks t
            WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed AND t.due_ms IS NOT NULL
                AND t.due_ms <= m.now_ms)
        AND NOT EXISTS (
            SELECT 1 FROM relet.tasks t
            WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed AND t.due_wall_ms IS NOT NULL
                AND t.due_wall_ms <= m.wall_ms)
        AND NOT EXISTS (
            SELECT 1 FROM relet.tasks t
            WHERE t.deadline_wall_ms IS NOT NULL AND t.deadline_wall_ms <= m.wall_ms AND t.state = 'ready')
        AND (q.name IS NULL OR NOT (
            q.paused OR q.concurrency IS NOT NULL OR q.share_concurrency IS NOT NULL OR q.rate IS NOT NULL
            OR q.shared_from IS NOT NULL)) AS is_clear,
        q.ttl_ms, q.timeout_ms, q.max_hold_ms, q.max_attempts, q.max_losses
    FROM m LEFT JOIN relet.queues q ON q.tenant = :tenant AND q.name = :queue),
first AS MATERIALIZED (
    SELECT t.* FROM relet.tasks t
    WHERE (SELECT is_clear FROM ahead) AND t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready'
        AND NOT t.delayed
        AND (:kinds::text IS NULL OR t.kind = ANY (ARRAY(SELECT jsonb_array_elements_text(:kinds::jsonb))))
        AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > (SELECT wall_ms FROM m))
        AND (t.exclusive IS NULL OR NOT EXISTS (
            SELECT 1 FROM relet.leases l
            WHERE l.tenant = t.tenant AND l.exclusive = t.exclusive AND l.exclusive IS NOT NULL AND l.ended IS NULL
                AND l.expires_ms > (SELECT now_ms FROM m)))
    ORDER BY t.priority DESC, t.seq
    LIMIT 1 FOR UPDATE OF t SKIP LOCKED),
terms AS MATERIALIZED (
    SELECT f.seq, f.tenant, f.attempt, {now_ms} AS now_ms, {wall_ms} AS wall_ms,
        coalesce(f.ttl_ms, :ttl_ms, (h.own ->> 'ttl_ms')::bigint, a.ttl_ms, :default_ttl_ms) AS ttl_ms,
        coalesce(f.timeout_ms, (h.own ->> 'timeout_ms')::bigint, a.timeout_ms) AS timeout_ms,
        coalesce(f.max_hold_ms, (h.own ->> 'max_hold_ms')::bigint, a.max_hold_ms) AS max_hold_ms,
        coalesce(f.max_attempts, (h.own ->> 'max_attempts')::integer, a.max_attempts, :default_max_attempts)
            AS max_attempts,
        coalesce(f.max_losses, (h.own ->> 'max_losses')::integer, a.max_losses, :default_max_losses) AS max_losses,
        coalesce((h.own ->> 'backoff_base_ms')::bigint, :default_backoff_base_ms) AS backoff_base_ms,
        coalesce((h.own ->> 'backoff_cap_ms')::bigint, :default_backoff_cap_ms) AS backoff_cap_ms
    FROM first f CROSS JOIN ahead a CROSS JOIN LATERAL (SELECT :handlers::jsonb -> f.kind AS own) h
    WHERE f.token = 0 AND f.exclusive IS NULL),
granted AS (
    INSERT INTO relet.leases AS l
    SELECT (m.epoch << 32) + nextval('relet.tokens'), e.seq, e.tenant, :holder, e.attempt, e.ttl_ms, e.timeout_ms,
        e.max_hold_ms, e.max_attempts, e.max_losses, e.backoff_base_ms, e.backoff_cap_ms, NULL, e.now_ms, e.wall_ms,
        e.now_ms, e.wall_ms, e.now_ms + least(e.ttl_ms, e.max_hold_ms), e.now_ms + least(e.ttl_ms, e.max_hold_ms),
        false, false, :call_id
    FROM terms e CROSS JOIN m
    RETURNING l.*),
told AS (
    INSERT INTO relet.events (task_seq, kind, state, token, holder, at_ms, wall_ms, detail)
    SELECT g.task_seq, 'claimed', 'leased', g.token, g.holder, g.claimed_ms, g.claimed_wall_ms,
        concat('{"ttl_ms":', g.ttl_ms, ',"attempt":', g.attempt, '}')
    FROM granted g),
taken AS (
    UPDATE relet.tasks t SET state = 'leased', token = g.token, updated_wall_ms = g.claimed_wall_ms
    FROM granted g WHERE t.seq = g.task_seq)
SELECT m.ahead_ms, m.steps, a.is_clear, (SELECT count(*) FROM first), i.input, {clock}, g.*, f.*
FROM m CROSS JOIN ahead a LEFT JOIN granted g ON true LEFT JOIN first f ON f.seq = g.task_seq
LEFT JOIN relet.inputs i ON i.task_seq = g.task_seq

-- name: complete_one
-- as lock_lease, and then the rows that a plain completion writes, where all is plain: this very run of the server, a lease
-- that is open, live and not to be cancelled, and no effect that is open. One row, whatever there is
WITH held AS MATERIALIZED (
    SELECT l.token, l.task_seq, l.holder, l.expires_ms, l.beat_ms
    FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.token = :token AND l.tenant = :tenant AND l.ended IS NULL AND NOT l.cancelling AND t.state = 'leased'
        AND t.unsettled = 0 AND t.id = :task_id AND strpos(coalesce(l.call_id, ''), '~') = 0
    FOR UPDATE OF t, l),
m AS MATERIALIZED (
    SELECT m.ahead_ms, m.steps, m.min_writer <= :schema AND r.server IS NOT DISTINCT FROM {server} AS is_ours,
        {now_ms} AS now_ms, {wall_ms} AS wall_ms
    FROM (SELECT count(*) FROM held) counted CROSS JOIN relet.meta m LEFT JOIN relet.run r ON r.one = m.one
    WHERE m.one = 1),
judged AS MATERIALIZED (
    SELECT h.*, m.now_ms, m.wall_ms FROM held h CROSS JOIN m
    WHERE m.is_ours AND h.expires_ms > m.now_ms AND h.beat_ms <= m.now_ms),
ended AS (
    UPDATE relet.leases l SET
        ended = 'completed', ended_ms = j.now_ms, ended_wall_ms = j.wall_ms, end_digest = :digest,
        end_answer = :answer
    FROM judged j WHERE l.token = j.token),
told AS (
    INSERT INTO relet.events (task_seq, kind, state, token, holder, at_ms, wall_ms, detail)
    SELECT task_seq, 'completed', 'done', token, holder, now_ms, wall_ms, '{}' FROM judged),
done AS (
    UPDATE relet.tasks t SET
        state = 'done', error = NULL, code = NULL, reason = NULL, result = :result, updated_wall_ms = j.wall_ms
    FROM judged j WHERE t.seq = j.task_seq)
SELECT m.ahead_ms, m.steps, (SELECT count(*) FROM judged), {clock} FROM m
