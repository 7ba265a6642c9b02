-- Statements of copy_in.py alone. Nobody may use the store meanwhile: its row asks for readers and writers that there are
-- none of. A table's statement has the columns of copy_out.sql of the other engine, in their order.

-- name: read_state
-- the single row; the epoch is that of the last token: numbers that outgrow their half go on into it
SELECT m.store_id, ((m.epoch << 32) + s.last_value) >> 32, m.min_reader, m.version
FROM relet.meta m CROSS JOIN relet.tokens s WHERE m.one = 1

-- name: has_work
-- the ends of six tables: has anybody worked with it; an event of the store itself, such as an outage, is no work
SELECT EXISTS (SELECT 1 FROM relet.tasks) OR EXISTS (SELECT 1 FROM relet.tombstones)
    OR EXISTS (SELECT 1 FROM relet.queues) OR EXISTS (SELECT 1 FROM relet.events WHERE task_seq IS NOT NULL)
    OR EXISTS (SELECT 1 FROM relet.api_keys) OR EXISTS (SELECT 1 FROM relet.api_audit)

-- name: count_clients
-- sessions under the same name; a store that was made a moment ago has none
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = current_setting('application_name')
    AND application_name <> ''

-- name: set_state
-- the single row
UPDATE relet.meta SET min_reader = :reader, min_writer = :writer WHERE one = 1

-- name: make_gone
-- a table that only the place of a copy has that was taken back
CREATE TABLE IF NOT EXISTS relet.gone (one smallint PRIMARY KEY CHECK (one = 1), place text NOT NULL, wall_ms bigint NOT NULL)

-- name: put_gone
-- the single row
INSERT INTO relet.gone (one, place, wall_ms) VALUES (1, :place, :wall_ms)
ON CONFLICT (one) DO UPDATE SET place = excluded.place, wall_ms = excluded.wall_ms

-- name: drop_gone
DROP TABLE IF EXISTS relet.gone

-- name: set_identity
-- the single row; with the key goes what proves a handle
UPDATE relet.meta SET store_id = :store_id, secret_key = :secret_key WHERE one = 1

-- name: set_epoch
-- the single row
UPDATE relet.meta SET epoch = greatest(epoch, :epoch) WHERE one = 1

-- name: read_now
-- the single row
SELECT m.ahead_ms, {clock}, {server} FROM relet.meta m WHERE m.one = 1

-- name: empty_tables
-- what an earlier run has left; the run of the server, its settings and its keys stay
TRUNCATE relet.tasks, relet.inputs, relet.leases, relet.late_beats, relet.checkpoints, relet.events, relet.queues,
    relet.totals, relet.tombstones, relet.rejections, relet.rejection_counts, relet.steps, relet.waits, relet.signals,
    relet.artifacts, relet.effects, relet.evidence, relet.places, relet.lapses, relet.api_keys,
    relet.api_audit, relet.api_audit_end

-- name: work_after
-- primary key, from the copied events on
SELECT EXISTS (SELECT 1 FROM relet.events WHERE seq > :seq AND task_seq IS NOT NULL)

-- name: count_access
-- the whole of a short table, and a single row
SELECT count(*), count(revoked_wall_ms), (SELECT coalesce(max(seq), 0) FROM relet.api_audit_end) FROM relet.api_keys

-- name: next_number
-- the table's own sequence; 1 where none was ever given
SELECT setval(pg_get_serial_sequence(:named, 'seq'), greatest(1, :last), :last > 0)

-- name: know_sizes
-- what the planner goes by; nobody should have to wait until the server finds it out by itself
ANALYZE relet.tasks, relet.inputs, relet.leases, relet.checkpoints, relet.events, relet.totals, relet.tombstones,
    relet.steps, relet.waits, relet.signals, relet.artifacts, relet.effects, relet.evidence

-- name: tasks
COPY relet.tasks (
    seq, tenant, id, queue, kind, state, delayed, due_ms, due_wall_ms, priority, attempt, failures, losses, streak, token,
    cancel_reason, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses, deadline_wall_ms, exclusive, share, labels,
    progress, error, code, reason, result, created_wall_ms, updated_wall_ms, waiting_for, wait_seq, unsettled, last_event)
FROM STDIN

-- name: inputs
COPY relet.inputs (task_seq, input) FROM STDIN

-- name: leases
COPY relet.leases (
    token, task_seq, tenant, holder, attempt, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses, backoff_base_ms,
    backoff_cap_ms, exclusive, claimed_ms, claimed_wall_ms, beat_ms, beat_wall_ms, expires_ms, check_ms, cancelling,
    excused, call_id, request_id, request_digest, took_over, ended, ended_ms, ended_wall_ms, end_digest, end_answer)
FROM STDIN

-- name: late_beats
COPY relet.late_beats (token, n, least_left_ms) FROM STDIN

-- name: checkpoints
COPY relet.checkpoints (task_seq, name, version, token, wall_ms, value) FROM STDIN

-- name: events
COPY relet.events (seq, task_seq, kind, state, token, holder, at_ms, wall_ms, detail) FROM STDIN

-- name: queues
COPY relet.queues (
    tenant, name, paused, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses, retention_ms, concurrency,
    share_concurrency, rate, rate_ms, shared_from, last_share, full_us)
FROM STDIN

-- name: totals
COPY relet.totals (
    tenant, queue, slot, submitted, takeovers, pruned, pruned_undone, pruned_failed, pruned_takeovers)
FROM STDIN

-- name: tombstones
COPY relet.tombstones (tenant, id, queue, state, token, result_digest, pruned_wall_ms) FROM STDIN

-- name: rejections
COPY relet.rejections (
    seq, task_seq, tenant, task_id, verb, holder, token, current_token, reason, late_ms, wall_ms, result)
FROM STDIN

-- name: rejection_counts
COPY relet.rejection_counts (tenant, reason, n) FROM STDIN

-- name: steps
COPY relet.steps (task_seq, name, slot, fingerprint, token, wall_ms, took_ms, cost, value) FROM STDIN

-- name: waits
COPY relet.waits (
    seq, task_seq, tenant, name, n, kind, ask, digest, fallback, token, opened_wall_ms, due_wall_ms, decision, value,
    decided_by, decided_wall_ms)
FROM STDIN

-- name: signals
COPY relet.signals (seq, task_seq, name, call_id, payload, wall_ms, taken_by) FROM STDIN

-- name: artifacts
COPY relet.artifacts (seq, task_seq, name, uri, sha256, size, token, wall_ms) FROM STDIN

-- name: effects
COPY relet.effects (
    seq, tenant, id, task_seq, name, key, fingerprint, contract, state, tries, token, first_wall_ms, send_by_wall_ms,
    receipt, error, reconciled_by, updated_wall_ms, call_id, cleared, first_ms, send_by_ms, starters)
FROM STDIN

-- name: evidence
COPY relet.evidence (seq, effect_seq, token, attempt, outcome, receipt, error, wall_ms) FROM STDIN

-- name: api_keys
COPY relet.api_keys (
    id, digest, name, tenant, role, scopes, queues, created_wall_ms, expires_wall_ms, revoked_wall_ms,
    used_wall_ms)
FROM STDIN

-- name: api_audit
COPY relet.api_audit (seq, wall_ms, key_id, key_name, tenant, operation, target, outcome, address, digest)
FROM STDIN

-- name: api_audit_end
COPY relet.api_audit_end (one, seq, digest) FROM STDIN
