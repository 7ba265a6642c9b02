-- Hot verbs in few statements. Those that end in "_all" write many rows at once, what is else written row by row, under the
-- same locks: {name:type} is a value where all rows have the same one, and else a column of {rows}.

-- name: insert_lease_all
-- primary key, indexes leases_open and leases_task
INSERT INTO relet.leases
SELECT
    {token:bigint}, {task_seq:bigint}, {tenant:text}, {holder:text}, {attempt:integer}, {ttl_ms:bigint},
    {timeout_ms:bigint}, {max_hold_ms:bigint}, {max_attempts:integer}, {max_losses:integer},
    {backoff_base_ms:bigint}, {backoff_cap_ms:bigint}, {exclusive:text}, {claimed_ms:bigint},
    {claimed_wall_ms:bigint}, {beat_ms:bigint}, {beat_wall_ms:bigint}, {expires_ms:bigint}, {check_ms:bigint},
    {cancelling:boolean}, {excused:boolean}, {call_id:text}, {request_id:text}, {request_digest:text},
    {took_over:bigint}, {ended:text}, {ended_ms:bigint}, {ended_wall_ms:bigint}, {end_digest:text},
    {end_answer:text}
FROM {rows}

-- name: add_event_all
-- primary key, whose numbers are drawn here; index events_task
INSERT INTO relet.events (task_seq, kind, state, token, holder, at_ms, wall_ms, detail)
SELECT {task_seq:bigint}, {kind:text}, {state:text}, {token:bigint}, {holder:text}, {at_ms:bigint},
    {wall_ms:bigint}, {detail:text}
FROM {rows}

-- name: take_task_all
-- primary key, for each
UPDATE relet.tasks t SET state = {state:text}, token = {token:bigint}, updated_wall_ms = {updated_wall_ms:bigint}
FROM {rows} WHERE t.seq = {seq:bigint}

-- name: end_lease_all
-- primary key, for each
UPDATE relet.leases l SET
    ended = {ended:text}, ended_ms = {ended_ms:bigint}, ended_wall_ms = {ended_wall_ms:bigint},
    end_digest = {end_digest:text}, end_answer = {end_answer:text}
FROM {rows} WHERE l.token = {token:bigint} AND l.ended IS NULL

-- name: complete_task_all
-- primary key, for each
UPDATE relet.tasks t SET
    state = {state:text}, error = {error:text}, code = {code:text}, reason = {reason:text},
    result = {result:text}, updated_wall_ms = {updated_wall_ms:bigint}
FROM {rows} WHERE t.seq = {seq:bigint}

-- name: insert_rejection_all
-- primary key, index rejections_task
INSERT INTO relet.rejections (
    task_seq, tenant, task_id, verb, holder, token, current_token, reason, late_ms, wall_ms, result)
SELECT
    {task_seq:bigint}, {tenant:text}, {task_id:text}, {verb:text}, {holder:text}, {token:bigint},
    {current_token:bigint}, {reason:text}, {late_ms:bigint}, {wall_ms:bigint}, {result:text}
FROM {rows}

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

-- name: find_tombstones
-- primary key, for each; a statement of its own behind one that inserts: that may have waited for a prune, and does not see
-- what it has left
SELECT g.id FROM relet.tombstones g
WHERE g.tenant = :tenant AND g.id = ANY (ARRAY(SELECT jsonb_array_elements_text(:ids::jsonb)))

-- name: is_anything_due
-- indexes leases_open, tasks_due, tasks_due_wall and tasks_deadline: seeks, no rows. What a claim by the rule sees to first
SELECT EXISTS (SELECT 1 FROM relet.leases l WHERE l.ended IS NULL AND l.check_ms <= c.now_ms)
    OR EXISTS (
        SELECT 1 FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed AND t.due_ms IS NOT NULL AND t.due_ms <= c.now_ms)
    OR EXISTS (
        SELECT 1 FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.delayed
            AND t.due_wall_ms IS NOT NULL AND t.due_wall_ms <= c.wall_ms)
    OR EXISTS (
        SELECT 1 FROM relet.tasks t
        WHERE t.deadline_wall_ms IS NOT NULL AND t.deadline_wall_ms <= c.wall_ms AND t.state = 'ready')
FROM (SELECT {now_m} AS now_ms, {wall_ms} AS wall_ms FROM relet.meta m WHERE m.one = 1 OFFSET 0) c

-- name: claim_plain
-- index tasks_ready, primary keys of meta, run and queues; the rows that plain grants write, where all is plain: this very
-- run of the server, its clock where the caller's says, a queue without limits, and tasks that nobody held before and
-- that want no key. What has fallen due or lapsed was looked for a moment ago. No row where anything is not plain: few
-- nodes and narrow ones, since a server prepares each of them anew for every call. Leases, and then tasks: joined here, each would be compared with each
WITH first AS MATERIALIZED (
    SELECT f.*, m.epoch, m.ahead_ms, m.steps, q.ttl_ms AS queue_ttl_ms, q.timeout_ms AS queue_timeout_ms,
        q.max_hold_ms AS queue_max_hold_ms, q.max_attempts AS queue_max_attempts, q.max_losses AS queue_max_losses
    FROM relet.meta m LEFT JOIN relet.queues q ON q.tenant = :tenant AND q.name = :queue
    CROSS JOIN LATERAL (
        SELECT t.seq, t.id, t.kind, t.attempt, t.ttl_ms, t.timeout_ms, t.max_hold_ms, t.max_attempts, t.max_losses,
            t.deadline_wall_ms, t.labels, t.progress, t.token = 0 AND t.exclusive IS NULL AS is_plain
        FROM relet.tasks t
        WHERE t.tenant = :tenant AND t.queue = :queue AND t.state = 'ready' AND NOT t.delayed
            AND (:kinds::text IS NULL OR t.kind = ANY (ARRAY(SELECT jsonb_array_elements_text(:kinds::jsonb))))
            AND (t.deadline_wall_ms IS NULL OR t.deadline_wall_ms > {wall_ms})
        ORDER BY t.priority DESC, t.seq
        LIMIT :limit FOR UPDATE OF t SKIP LOCKED) f
    WHERE m.one = 1 AND m.min_writer <= :schema AND m.epoch = :epoch AND m.steps = :steps
        AND (SELECT r.server FROM relet.run r WHERE r.one = 1) IS NOT DISTINCT FROM (SELECT {server})
        AND (q.name IS NULL OR NOT (
            q.paused OR q.concurrency IS NOT NULL OR q.share_concurrency IS NOT NULL OR q.rate IS NOT NULL
            OR q.shared_from IS NOT NULL))),
granted AS (
    INSERT INTO relet.leases AS l
    SELECT (e.epoch << 32) + nextval('relet.tokens'), e.seq, :tenant, :holder, e.attempt, e.ttl_ms, e.timeout_ms,
        e.max_hold_ms, coalesce(e.max_attempts, :default_max_attempts), coalesce(e.max_losses, :default_max_losses),
        coalesce((e.own ->> 'backoff_base_ms')::bigint, :default_backoff_base_ms),
        coalesce((e.own ->> 'backoff_cap_ms')::bigint, :default_backoff_cap_ms), NULL, e.now_ms, e.wall_ms, e.now_ms,
        e.wall_ms, e.now_ms + least(e.ttl_ms, e.max_hold_ms), e.now_ms + least(e.ttl_ms, e.max_hold_ms),
        false, false, :call_id
    FROM (
        SELECT m.seq, m.attempt, m.epoch, {now_m} AS now_ms, {wall_ms} AS wall_ms, h.own,
            coalesce(m.ttl_ms, :ttl_ms, (h.own ->> 'ttl_ms')::bigint, m.queue_ttl_ms, :default_ttl_ms) AS ttl_ms,
            coalesce(m.timeout_ms, (h.own ->> 'timeout_ms')::bigint, m.queue_timeout_ms) AS timeout_ms,
            coalesce(m.max_hold_ms, (h.own ->> 'max_hold_ms')::bigint, m.queue_max_hold_ms) AS max_hold_ms,
            coalesce(m.max_attempts, (h.own ->> 'max_attempts')::integer, m.queue_max_attempts) AS max_attempts,
            coalesce(m.max_losses, (h.own ->> 'max_losses')::integer, m.queue_max_losses) AS max_losses
        FROM first m CROSS JOIN LATERAL (SELECT :handlers::jsonb -> m.kind AS own) h
        WHERE (SELECT bool_and(p.is_plain) FROM first p)
        OFFSET 0) e
    WHERE e.now_ms BETWEEN :least_ms AND :most_ms
    RETURNING l.token, l.task_seq, l.attempt, l.ttl_ms, l.timeout_ms, l.claimed_ms, l.claimed_wall_ms, l.expires_ms),
told AS (
    INSERT INTO relet.events (task_seq, kind, state, token, holder, at_ms, wall_ms, detail)
    SELECT g.task_seq, 'claimed', 'leased', g.token, :holder, g.claimed_ms, g.claimed_wall_ms,
        concat('{"ttl_ms":', g.ttl_ms, ',"attempt":', g.attempt, '}')
    FROM granted g),
taken AS (
    UPDATE relet.tasks t SET state = 'leased', token = g.token, updated_wall_ms = g.claimed_wall_ms
    FROM granted g WHERE t.seq = g.task_seq)
SELECT NULL::bigint, NULL::bigint, NULL::bigint, g.task_seq, g.token, g.attempt, g.ttl_ms, g.timeout_ms, g.claimed_ms,
    g.claimed_wall_ms, g.expires_ms, NULL::bigint, NULL::text, NULL::text, NULL::text, NULL::text,
    (SELECT i.input FROM relet.inputs i WHERE i.task_seq = g.task_seq)
FROM granted g
UNION ALL
SELECT f.ahead_ms, f.steps, {clock}, f.seq, NULL, NULL, NULL, NULL, NULL, NULL, NULL, f.deadline_wall_ms, f.id, f.kind,
    f.labels, f.progress, NULL
FROM first f

-- name: complete_one
-- as lock_lease, and then the rows that a plain completion writes, where all is plain: this very run of the server, its
-- clock where the caller's says, a lease that is open, live and not to be cancelled, and no effect that is open. No row
-- where anything is not. "ended" and "id" are asked for in a form that no index knows: the two primary keys find one row
-- each, whatever the tables have grown to
WITH held AS MATERIALIZED (
    SELECT l.token, l.task_seq, l.holder, l.expires_ms, l.beat_ms, m.ahead_ms, m.steps
    FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq CROSS JOIN relet.meta m
    WHERE l.token = :token AND l.tenant = :tenant AND coalesce(l.ended, '') = '' AND NOT l.cancelling
        AND t.state = 'leased' AND t.unsettled = 0 AND t.id || '' = :task_id
        AND strpos(coalesce(l.call_id, ''), '~') = 0
        AND m.one = 1 AND m.min_writer <= :schema AND m.epoch = :epoch AND m.steps = :steps
        AND (SELECT r.server FROM relet.run r WHERE r.one = 1) IS NOT DISTINCT FROM (SELECT {server})
    FOR UPDATE OF t, l),
judged AS MATERIALIZED (
    SELECT j.* FROM (SELECT m.*, {now_m} AS now_ms, {wall_ms} AS wall_ms FROM held m OFFSET 0) j
    WHERE j.expires_ms > j.now_ms AND j.beat_ms <= j.now_ms AND j.now_ms BETWEEN :least_ms AND :most_ms),
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
SELECT j.ahead_ms, j.steps, {clock} FROM judged j

-- name: complete_plain
-- as look_endings, and then the rows that plain completions write, where all of them are plain; else it writes none. As
-- above, no index knows the form in which "ended" is asked for
WITH held AS MATERIALIZED (
    SELECT l.token, l.task_seq, l.holder, l.expires_ms
    FROM relet.leases l JOIN relet.tasks t ON t.seq = l.task_seq
    WHERE l.token = ANY (:tokens::bigint[]) AND l.tenant = :tenant AND coalesce(l.ended, '') = ''
        AND NOT l.cancelling AND t.state = 'leased' AND t.unsettled = 0
        AND (SELECT m.min_writer <= :schema AND m.epoch = :epoch AND m.steps = :steps FROM relet.meta m WHERE m.one = 1)
        AND (SELECT r.server FROM relet.run r WHERE r.one = 1) IS NOT DISTINCT FROM (SELECT {server})
    ORDER BY t.seq, l.token FOR UPDATE OF t, l),
clock AS MATERIALIZED (
    SELECT m.ahead_ms, m.steps, counted.n, {now_m} AS now_ms, {wall_ms} AS wall_ms
    FROM (SELECT count(*) AS n FROM held) counted CROSS JOIN relet.meta m WHERE m.one = 1),
judged AS MATERIALIZED (
    SELECT h.token, h.task_seq, h.holder, c.ahead_ms, c.steps, c.now_ms, c.wall_ms, a.result, a.digest
    FROM clock c CROSS JOIN held h
    JOIN unnest(:tokens::bigint[], :results::text[], :digests::text[]) AS a (token, result, digest) ON a.token = h.token
    WHERE h.expires_ms > c.now_ms AND c.now_ms BETWEEN :least_ms AND :most_ms AND c.n = cardinality(:tokens::bigint[])),
plain AS MATERIALIZED (
    SELECT j.* FROM judged j WHERE (SELECT count(*) FROM judged) = cardinality(:tokens::bigint[])),
ended AS (
    UPDATE relet.leases l SET
        ended = 'completed', ended_ms = p.now_ms, ended_wall_ms = p.wall_ms, end_digest = p.digest,
        end_answer = :answer
    FROM plain p WHERE l.token = p.token),
told AS (
    INSERT INTO relet.events (task_seq, kind, state, token, holder, at_ms, wall_ms, detail)
    SELECT task_seq, 'completed', 'done', token, holder, now_ms, wall_ms, '{}' FROM plain),
done AS (
    UPDATE relet.tasks t SET
        state = 'done', error = NULL, code = NULL, reason = NULL, result = p.result, updated_wall_ms = p.wall_ms
    FROM plain p WHERE t.seq = p.task_seq)
SELECT p.ahead_ms, p.steps, {clock} FROM plain p LIMIT 1
