-- Statements of copy_out.py alone, which holds the write lock. Each table is read from one end to the other, its columns
-- as copy_in.sql of the other engine has them; :ahead_ms brings instants of store time to the other one's. `places`,
-- `holders` and the chain of events are this engine's own, and stay.

-- name: tasks
SELECT seq, tenant, id, queue, kind, state, delayed, due_ms + :ahead_ms, due_wall_ms, priority, attempt, failures,
    losses, streak, token, cancel_reason, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses, deadline_wall_ms,
    exclusive, share, labels, progress, error, code, reason, result, created_wall_ms, updated_wall_ms, waiting_for,
    wait_seq, unsettled, 0
FROM tasks ORDER BY seq

-- name: inputs
SELECT task_seq, input FROM inputs ORDER BY task_seq

-- name: leases
SELECT token, task_seq, tenant, holder, attempt, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses,
    backoff_base_ms, backoff_cap_ms, exclusive, claimed_ms + :ahead_ms, claimed_wall_ms, beat_ms + :ahead_ms,
    beat_wall_ms, expires_ms + :ahead_ms, check_ms + :ahead_ms, cancelling, excused, call_id, request_id,
    request_digest, took_over, ended, ended_ms + :ahead_ms, ended_wall_ms, end_digest, end_answer
FROM leases ORDER BY token

-- name: late_beats
SELECT token, n, least_left_ms FROM late_beats ORDER BY token

-- name: checkpoints
SELECT task_seq, name, version, token, wall_ms, value FROM checkpoints ORDER BY task_seq, name, version

-- name: events
SELECT seq, task_seq, kind, state, token, holder, at_ms + :ahead_ms, wall_ms, detail FROM events ORDER BY seq

-- name: queues
SELECT tenant, name, paused, ttl_ms, timeout_ms, max_hold_ms, max_attempts, max_losses, retention_ms, concurrency,
    share_concurrency, rate, rate_ms, shared_from, last_share, full_us + :ahead_ms * 1000
FROM queues ORDER BY tenant, name

-- name: totals
SELECT tenant, queue, 0, submitted, takeovers, pruned, pruned_undone, pruned_failed, pruned_takeovers
FROM totals ORDER BY tenant, queue

-- name: tombstones
SELECT tenant, id, queue, state, token, result_digest, pruned_wall_ms FROM tombstones ORDER BY tenant, id

-- name: rejections
SELECT seq, task_seq, tenant, task_id, verb, holder, token, current_token, reason, late_ms, wall_ms, result
FROM rejections ORDER BY seq

-- name: rejection_counts
SELECT tenant, reason, n FROM rejection_counts ORDER BY tenant, reason

-- name: steps
SELECT task_seq, name, slot, fingerprint, token, wall_ms, took_ms, cost, value FROM steps
ORDER BY task_seq, name, slot

-- name: waits
SELECT seq, task_seq, tenant, name, n, kind, ask, digest, fallback, token, opened_wall_ms, due_wall_ms, decision,
    value, decided_by, decided_wall_ms
FROM waits ORDER BY seq

-- name: signals
SELECT seq, task_seq, name, call_id, payload, wall_ms, taken_by FROM signals ORDER BY seq

-- name: artifacts
SELECT seq, task_seq, name, uri, sha256, size, token, wall_ms FROM artifacts ORDER BY seq

-- name: effects
SELECT seq, tenant, id, task_seq, name, key, fingerprint, contract, state, tries, token, first_wall_ms,
    send_by_wall_ms, receipt, error, reconciled_by, updated_wall_ms, call_id, cleared, first_ms + :ahead_ms,
    send_by_ms + :ahead_ms, starters
FROM effects ORDER BY seq

-- name: evidence
-- what has no number of its own is numbered as it lies
SELECT rowid, effect_seq, token, attempt, outcome, receipt, error, wall_ms FROM evidence ORDER BY rowid

-- name: api_keys
SELECT id, digest, name, tenant, role, scopes, queues, created_wall_ms, expires_wall_ms, revoked_wall_ms,
    used_wall_ms
FROM api_keys ORDER BY id

-- name: api_audit
SELECT seq, wall_ms, key_id, key_name, tenant, operation, target, outcome, address, digest FROM api_audit
ORDER BY seq

-- name: api_audit_end
SELECT one, seq, digest FROM api_audit_end

-- name: count_rows
SELECT 'tasks', count(*) FROM tasks
UNION ALL SELECT 'inputs', count(*) FROM inputs
UNION ALL SELECT 'leases', count(*) FROM leases
UNION ALL SELECT 'late_beats', count(*) FROM late_beats
UNION ALL SELECT 'checkpoints', count(*) FROM checkpoints
UNION ALL SELECT 'events', count(*) FROM events
UNION ALL SELECT 'queues', count(*) FROM queues
UNION ALL SELECT 'totals', count(*) FROM totals
UNION ALL SELECT 'tombstones', count(*) FROM tombstones
UNION ALL SELECT 'rejections', count(*) FROM rejections
UNION ALL SELECT 'rejection_counts', count(*) FROM rejection_counts
UNION ALL SELECT 'steps', count(*) FROM steps
UNION ALL SELECT 'waits', count(*) FROM waits
UNION ALL SELECT 'signals', count(*) FROM signals
UNION ALL SELECT 'artifacts', count(*) FROM artifacts
UNION ALL SELECT 'effects', count(*) FROM effects
UNION ALL SELECT 'evidence', count(*) FROM evidence
UNION ALL SELECT 'api_keys', count(*) FROM api_keys
UNION ALL SELECT 'api_audit', count(*) FROM api_audit
UNION ALL SELECT 'api_audit_end', count(*) FROM api_audit_end

-- name: last_numbers
-- what SQLite remembers of tables whose numbers are never used again; the ends of the others
SELECT name, seq FROM sqlite_sequence
UNION ALL SELECT 'events', max(seq) FROM events
UNION ALL SELECT 'evidence', max(rowid) FROM evidence

-- name: open_leases
-- index leases_open, the whole of it
SELECT t.tenant, t.id, l.holder, l.expires_ms - :now_ms FROM leases l JOIN tasks t ON t.seq = l.task_seq
WHERE l.ended IS NULL ORDER BY l.expires_ms DESC

-- name: count_access
-- the whole of a short table, and a single row
SELECT count(*), count(revoked_wall_ms), (SELECT coalesce(max(seq), 0) FROM api_audit_end) FROM api_keys
