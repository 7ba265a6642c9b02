-- Statements of durable work for the PostgreSQL engine: steps, waits, signals, artifacts, effects. The row of a task is
-- the lock of all that belongs to it. Effects are locked besides: by its key, one may pass from task to task. Each
-- block says which index keeps it quick.

-- name: lock_step
-- primary key (task_seq, name, slot), under the lock of the task
SELECT s.* FROM relet.steps s WHERE s.task_seq = :task_seq AND s.name = :name AND s.slot = :slot

-- name: insert_step
-- primary key (task_seq, name, slot), which refuses a second one
INSERT INTO relet.steps VALUES (
    :task_seq, :name, :slot, :fingerprint, :token, :wall_ms, :took_ms, :cost, :value)

-- name: find_kept
-- primary key (task_seq, name, slot); a large value is left out, and read apart when it is asked for
SELECT name, slot, fingerprint, took_ms, cost, CASE WHEN length(value) <= :most THEN value END FROM relet.steps
WHERE task_seq = :task_seq AND (name, slot) > (:name, :slot) ORDER BY name, slot LIMIT :limit

-- name: find_step
-- primary key (task_seq, name, slot)
SELECT value FROM relet.steps WHERE task_seq = :task_seq AND name = :name AND slot = :slot

-- name: find_steps
-- primary key (task_seq, name, slot)
SELECT s.* FROM relet.steps s
WHERE s.task_seq = :task_seq AND (s.name, s.slot) > (:name, :slot) ORDER BY s.name, s.slot LIMIT :limit

-- name: find_saving
-- primary key (task_seq, name, slot), one task only
SELECT count(*), coalesce(sum(took_ms), 0)::bigint, coalesce(sum(cost), 0.0) FROM relet.steps
WHERE task_seq = :task_seq

-- name: find_seq
-- index tasks_id
SELECT seq FROM relet.tasks WHERE tenant = :tenant AND id = :id

-- name: find_checkpoints
-- primary key (task_seq, name, version)
SELECT name, version, token, wall_ms, value FROM relet.checkpoints
WHERE task_seq = :task_seq AND (:name::text IS NULL OR name = :name) ORDER BY name, version DESC

-- name: insert_artifact
INSERT INTO relet.artifacts (task_seq, name, uri, sha256, size, token, wall_ms)
VALUES (:task_seq, :name, :uri, :sha256, :size, :token, :wall_ms)

-- name: find_artifacts
-- index artifacts_name, one task only
SELECT name, uri, sha256, size, token, wall_ms FROM relet.artifacts WHERE task_seq = :task_seq ORDER BY seq

-- name: find_artifact
-- index artifacts_name, backwards
SELECT name, uri, sha256, size, token, wall_ms FROM relet.artifacts
WHERE task_seq = :task_seq AND name = :name ORDER BY seq DESC LIMIT 1

-- name: lock_wait
-- primary key
SELECT w.* FROM relet.waits w WHERE w.seq = :seq FOR UPDATE

-- name: lock_question
-- index waits_question
SELECT w.* FROM relet.waits w
WHERE w.task_seq = :task_seq AND w.name = :name AND w.n = :n AND w.digest = :digest FOR UPDATE

-- name: lock_last_wait
-- index waits_question, backwards; of several questions under one number the one that was asked last
SELECT w.* FROM relet.waits w WHERE w.task_seq = :task_seq AND w.name = :name
ORDER BY w.n DESC, w.seq DESC LIMIT 1 FOR UPDATE

-- name: find_parked
-- index events_task, backwards, to where the task was parked last
SELECT e.detail FROM relet.events e WHERE e.task_seq = :task_seq AND e.kind = 'parked' ORDER BY e.seq DESC LIMIT 1

-- name: lock_due_waits
-- index tasks_unanswered; passes over what others have locked
WITH held AS MATERIALIZED (
    SELECT t.* FROM relet.tasks t
    WHERE t.state = 'waiting' AND t.due_wall_ms IS NOT NULL AND t.due_wall_ms <= :wall_ms
    ORDER BY t.due_wall_ms LIMIT :limit FOR UPDATE OF t SKIP LOCKED)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.due_wall_ms

-- name: lock_reconciling
-- index waits_reconciling; the task of each first, as whoever answers it does
WITH held AS MATERIALIZED (
    SELECT w.* FROM relet.waits w JOIN relet.tasks t ON t.seq = w.task_seq
    WHERE w.name = :name AND w.kind = 'reconcile' AND w.decision IS NULL AND w.tenant = :tenant
    ORDER BY w.task_seq, w.seq FOR UPDATE OF t, w)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.task_seq, held.seq

-- name: insert_wait
INSERT INTO relet.waits (
    task_seq, tenant, name, n, kind, ask, digest, fallback, token, opened_wall_ms, due_wall_ms, decision, value,
    decided_by, decided_wall_ms)
VALUES (
    :task_seq, :tenant, :name, :n, :kind, :ask, :digest, :fallback, :token, :opened_wall_ms, :due_wall_ms, :decision,
    :value, :decided_by, :decided_wall_ms)
RETURNING seq

-- name: update_wait
-- primary key; what was asked is not written again, and a decision stands
UPDATE relet.waits SET
    fallback = :fallback, token = :token, opened_wall_ms = :opened_wall_ms, due_wall_ms = :due_wall_ms,
    decision = :decision, value = :value, decided_by = :decided_by, decided_wall_ms = :decided_wall_ms
WHERE seq = :seq AND decision IS NULL

-- name: find_task_waits
-- index waits_question, one task only
SELECT t.id, t.queue, t.wait_seq, w.* FROM relet.waits w JOIN relet.tasks t ON t.seq = w.task_seq
WHERE w.task_seq = :task_seq AND w.seq > :after ORDER BY w.seq LIMIT :limit

-- name: find_open_waits
-- index tasks_set_aside, then the primary key of waits
SELECT t.id, t.queue, t.wait_seq, w.* FROM relet.tasks t JOIN relet.waits w ON w.seq = t.wait_seq
WHERE t.tenant = :tenant AND t.state = 'waiting' AND w.seq > :after AND (:queue::text IS NULL OR t.queue = :queue)
ORDER BY w.seq LIMIT :limit

-- name: find_decisions
-- index waits_question, one task only
SELECT w.* FROM relet.waits w
WHERE w.task_seq = :task_seq AND (:name::text IS NULL OR w.name = :name) AND w.decision IS NOT NULL AND w.seq > :after
ORDER BY w.seq LIMIT :limit

-- name: lock_signal
-- index signals_kept: the one that came first; under the lock of the task
SELECT seq, payload FROM relet.signals
WHERE task_seq = :task_seq AND name = :name AND taken_by IS NULL ORDER BY seq LIMIT 1

-- name: find_signal
-- index signals_call
SELECT coalesce(taken_by, 0) FROM relet.signals WHERE task_seq = :task_seq AND call_id = :call_id

-- name: insert_signal
INSERT INTO relet.signals (task_seq, name, call_id, payload, wall_ms, taken_by)
VALUES (:task_seq, :name, :call_id, :payload, :wall_ms, :taken_by)

-- name: take_signal
-- primary key
UPDATE relet.signals SET taken_by = :taken_by WHERE seq = :seq

-- name: count_signals
-- index signals_kept
SELECT count(*) FROM relet.signals WHERE task_seq = :task_seq AND taken_by IS NULL

-- name: lock_effect
-- index effects_id
WITH held AS MATERIALIZED (SELECT e.* FROM relet.effects e WHERE e.tenant = :tenant AND e.id = :id FOR UPDATE)
SELECT held.*, {clock} FROM held

-- name: lock_started
-- index effects_task, one task only
WITH held AS MATERIALIZED (
    SELECT e.* FROM relet.effects e WHERE e.task_seq = :task_seq AND e.token = :token AND e.state = 'started'
    ORDER BY e.seq FOR UPDATE)
SELECT held.*, {clock} FROM (SELECT count(*) FROM held) counted CROSS JOIN held ORDER BY held.seq

-- name: insert_effect
INSERT INTO relet.effects (
    tenant, id, task_seq, name, key, fingerprint, contract, state, tries, token, first_wall_ms, send_by_wall_ms,
    receipt, error, reconciled_by, updated_wall_ms, call_id, cleared, first_ms, send_by_ms, starters)
VALUES (
    :tenant, :id, :task_seq, :name, :key, :fingerprint, :contract, :state, :tries, :token, :first_wall_ms,
    :send_by_wall_ms, :receipt, :error, :reconciled_by, :updated_wall_ms, :call_id, :cleared, :first_ms,
    :send_by_ms, :starters)
RETURNING seq

-- name: update_effect
-- primary key; its identity is not written again, and what has happened outside stays so
UPDATE relet.effects SET
    task_seq = :task_seq, contract = :contract, state = :state, tries = :tries, token = :token,
    first_wall_ms = :first_wall_ms, send_by_wall_ms = :send_by_wall_ms, receipt = :receipt, error = :error,
    reconciled_by = :reconciled_by, updated_wall_ms = :updated_wall_ms, call_id = :call_id, cleared = :cleared,
    first_ms = :first_ms, send_by_ms = :send_by_ms, starters = :starters
WHERE seq = :seq AND (state <> 'succeeded' OR :state::text = 'succeeded')

-- name: insert_evidence
INSERT INTO relet.evidence (effect_seq, token, attempt, outcome, receipt, error, wall_ms)
VALUES (:effect_seq, :token, :attempt, :outcome, :receipt, :error, :wall_ms)

-- name: lock_evidence
-- index evidence_effect, under the lock of the effect
SELECT effect_seq, token, attempt, outcome, receipt, error, wall_ms FROM relet.evidence
WHERE effect_seq = :effect_seq ORDER BY seq

-- name: find_open_effects
-- index effects_task, one task only
SELECT id FROM relet.effects WHERE task_seq = :task_seq AND (state = 'started' OR state = 'unknown') ORDER BY seq

-- name: find_effects
-- primary key, in pages; index effects_id, sorted, where the tenant has few
SELECT t.id, t.queue, e.* FROM relet.effects e JOIN relet.tasks t ON t.seq = e.task_seq
WHERE e.tenant = :tenant AND e.seq > :after AND (:state::text IS NULL OR e.state = :state)
ORDER BY e.seq LIMIT :limit

-- name: find_task_effects
-- index tasks_id, then effects_task
SELECT t.id, t.queue, e.* FROM relet.tasks t JOIN relet.effects e ON e.task_seq = t.seq
WHERE t.tenant = :tenant AND t.id = :task_id AND e.seq > :after AND (:state::text IS NULL OR e.state = :state)
ORDER BY e.seq LIMIT :limit

-- name: find_effects_unsettled
-- index effects_unsettled, whose predicate is repeated here: the few that somebody must look at, however many have
-- succeeded
SELECT t.id, t.queue, e.* FROM relet.effects e JOIN relet.tasks t ON t.seq = e.task_seq
WHERE e.tenant = :tenant AND (e.state = 'started' OR e.state = 'unknown') AND e.state = :state AND e.seq > :after
ORDER BY e.seq LIMIT :limit

-- name: find_effect
-- index effects_id
SELECT t.id, t.queue, e.* FROM relet.effects e JOIN relet.tasks t ON t.seq = e.task_seq
WHERE e.tenant = :tenant AND e.id = :id

-- name: find_referenced
-- indexes artifacts_digest, inputs_filed, results_filed, checkpoints_filed, steps_filed, rejections_filed: a seek in
-- each for each digest
SELECT j.value FROM jsonb_array_elements_text(:digests::jsonb) AS j (value)
WHERE EXISTS (SELECT 1 FROM relet.artifacts a WHERE a.sha256 = j.value)
    OR EXISTS (
        SELECT 1 FROM relet.inputs i
        WHERE substr(i.input, 20, 64) = j.value AND substr(i.input, 1, 19) = '{"relet:artifact":"')
    OR EXISTS (
        SELECT 1 FROM relet.tasks t
        WHERE substr(t.result, 20, 64) = j.value AND substr(t.result, 1, 19) = '{"relet:artifact":"')
    OR EXISTS (
        SELECT 1 FROM relet.checkpoints c
        WHERE substr(c.value, 20, 64) = j.value AND substr(c.value, 1, 19) = '{"relet:artifact":"')
    OR EXISTS (
        SELECT 1 FROM relet.rejections r
        WHERE substr(r.result, 20, 64) = j.value AND substr(r.result, 1, 19) = '{"relet:artifact":"')
    OR EXISTS (
        SELECT 1 FROM relet.steps s
        WHERE substr(s.value, 20, 64) = j.value AND substr(s.value, 1, 19) = '{"relet:artifact":"')

-- name: find_named
-- as find_referenced, then the primary key of tasks: what one tenant names, in some of its queues or in all
SELECT j.value FROM jsonb_array_elements_text(:digests::jsonb) AS j (value)
WHERE EXISTS (
    SELECT 1 FROM (
        SELECT a.task_seq FROM relet.artifacts a WHERE a.sha256 = j.value
        UNION ALL
        SELECT i.task_seq FROM relet.inputs i
        WHERE substr(i.input, 20, 64) = j.value AND substr(i.input, 1, 19) = '{"relet:artifact":"'
        UNION ALL
        SELECT r.seq FROM relet.tasks r
        WHERE substr(r.result, 20, 64) = j.value AND substr(r.result, 1, 19) = '{"relet:artifact":"'
        UNION ALL
        SELECT c.task_seq FROM relet.checkpoints c
        WHERE substr(c.value, 20, 64) = j.value AND substr(c.value, 1, 19) = '{"relet:artifact":"'
        UNION ALL
        SELECT r.task_seq FROM relet.rejections r
        WHERE substr(r.result, 20, 64) = j.value AND substr(r.result, 1, 19) = '{"relet:artifact":"'
        UNION ALL
        SELECT s.task_seq FROM relet.steps s
        WHERE substr(s.value, 20, 64) = j.value AND substr(s.value, 1, 19) = '{"relet:artifact":"') n
    JOIN relet.tasks t ON t.seq = n.task_seq
    WHERE t.tenant = :tenant AND (
        :queues::text IS NULL OR t.queue IN (SELECT q FROM jsonb_array_elements_text(:queues::jsonb) AS q)))
