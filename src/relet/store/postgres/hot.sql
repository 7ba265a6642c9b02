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
