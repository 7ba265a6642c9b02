-- The first schema. One statement relies on each index; see statements.sql. Alternatives are written with OR: for IN,
-- SQLite builds a table of its own each time that a row is written.

CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    store_id TEXT NOT NULL,
    secret_key BLOB NOT NULL,
    min_reader INTEGER NOT NULL,
    min_writer INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    n INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    time_namespace TEXT NOT NULL,
    machine_id TEXT NOT NULL,
    mono_base_ms INTEGER NOT NULL,
    store_base_ms INTEGER NOT NULL,
    wall_at_base_ms INTEGER NOT NULL,
    lapse_second INTEGER NOT NULL DEFAULT 0,
    lapse_count INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Tokens never go back, whatever program writes here. The last one is the larger of this row's and the register's.
CREATE TRIGGER meta_tokens_grow BEFORE UPDATE OF epoch, n ON meta
WHEN (NEW.epoch, NEW.n) < (OLD.epoch, OLD.n)
BEGIN
    SELECT RAISE(ABORT, 'tokens only grow');
END;

CREATE TRIGGER meta_stays BEFORE DELETE ON meta
BEGIN
    SELECT RAISE(ABORT, 'the row of tokens is never deleted');
END;

CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL CHECK (
        state = 'ready' OR state = 'leased' OR state = 'done' OR state = 'waiting' OR state = 'failed'
        OR state = 'cancelled'),
    delayed INTEGER NOT NULL,
    due_ms INTEGER,
    due_wall_ms INTEGER,
    priority INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    streak INTEGER NOT NULL,
    token INTEGER NOT NULL,
    cancel_reason TEXT,
    ttl_ms INTEGER,
    timeout_ms INTEGER,
    max_hold_ms INTEGER,
    max_attempts INTEGER,
    max_losses INTEGER,
    deadline_wall_ms INTEGER,
    exclusive TEXT,
    share TEXT,
    labels TEXT,
    progress TEXT,
    error TEXT,
    code TEXT,
    reason TEXT,
    result TEXT,
    created_wall_ms INTEGER NOT NULL,
    updated_wall_ms INTEGER NOT NULL,
    waiting_for TEXT,
    wait_seq INTEGER,
    unsettled INTEGER NOT NULL DEFAULT 0 CHECK (unsettled >= 0),
    last_event INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX tasks_id ON tasks (tenant, id);
CREATE INDEX tasks_ready ON tasks (tenant, queue, priority DESC, seq, kind) WHERE state = 'ready' AND delayed = 0;
CREATE INDEX tasks_due ON tasks (tenant, queue, due_ms) WHERE delayed = 1 AND due_ms IS NOT NULL;
CREATE INDEX tasks_due_wall ON tasks (tenant, queue, due_wall_ms) WHERE delayed = 1 AND due_wall_ms IS NOT NULL;
CREATE INDEX tasks_deadline ON tasks (deadline_wall_ms) WHERE deadline_wall_ms IS NOT NULL AND state = 'ready';
CREATE INDEX tasks_set_aside ON tasks (tenant, state, seq)
WHERE state = 'waiting' OR state = 'failed' OR state = 'cancelled';

-- Apart from the task, so that a change of state never rewrites it.
CREATE TABLE inputs (
    task_seq INTEGER PRIMARY KEY REFERENCES tasks (seq),
    input TEXT NOT NULL
) STRICT;

-- The register: every grant, for ever. Open until `ended` is set.
CREATE TABLE leases (
    token INTEGER PRIMARY KEY,
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    tenant TEXT NOT NULL,
    holder TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    ttl_ms INTEGER NOT NULL,
    timeout_ms INTEGER,
    max_hold_ms INTEGER,
    max_attempts INTEGER NOT NULL,
    max_losses INTEGER NOT NULL,
    backoff_base_ms INTEGER NOT NULL,
    backoff_cap_ms INTEGER NOT NULL,
    exclusive TEXT,
    claimed_ms INTEGER NOT NULL,
    claimed_wall_ms INTEGER NOT NULL,
    beat_ms INTEGER NOT NULL,
    beat_wall_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    check_ms INTEGER NOT NULL,
    cancelling INTEGER NOT NULL,
    excused INTEGER NOT NULL,
    call_id TEXT,
    request_id TEXT,
    request_digest TEXT,
    took_over INTEGER,
    ended TEXT CHECK (
        ended = 'completed' OR ended = 'released' OR ended = 'failed' OR ended = 'parked' OR ended = 'lapsed'),
    ended_ms INTEGER,
    ended_wall_ms INTEGER,
    end_digest TEXT,
    end_answer TEXT
) STRICT;

-- check_ms, not expires_ms: a renewal moves expires_ms only, and so touches no index.
CREATE INDEX leases_open ON leases (check_ms) WHERE ended IS NULL;
CREATE UNIQUE INDEX leases_exclusive ON leases (tenant, exclusive) WHERE ended IS NULL AND exclusive IS NOT NULL;
CREATE INDEX leases_request ON leases (request_id) WHERE request_id IS NOT NULL;

-- A row that is deleted after all leaves its token behind, for the next one to be larger.
CREATE TRIGGER leases_tokens_grow BEFORE DELETE ON leases
WHEN OLD.token > (SELECT epoch << 32 | n FROM meta WHERE one = 1)
BEGIN
    UPDATE meta SET epoch = OLD.token >> 32, n = OLD.token & 0xFFFFFFFF WHERE one = 1;
END;

CREATE TRIGGER leases_tokens_stay BEFORE UPDATE OF token ON leases
BEGIN
    SELECT RAISE(ABORT, 'the token of a lease never changes');
END;

CREATE TABLE checkpoints (
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    token INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (task_seq, name, version)
) STRICT, WITHOUT ROWID;

-- The history of a task is a chain: its row names the last event, and each event the one before, or 0. An index by
-- task instead would be one more page to write in every transaction.
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    task_seq INTEGER,
    before INTEGER NOT NULL DEFAULT 0,
    kind TEXT NOT NULL,
    state TEXT,
    token INTEGER,
    holder TEXT,
    at_ms INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL,
    detail TEXT NOT NULL
) STRICT;

CREATE TABLE queues (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    paused INTEGER NOT NULL,
    ttl_ms INTEGER,
    timeout_ms INTEGER,
    max_hold_ms INTEGER,
    max_attempts INTEGER,
    max_losses INTEGER,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Figures never read the finished tasks: what is done is what was submitted, less all that is not done.
CREATE TABLE totals (
    tenant TEXT NOT NULL,
    queue TEXT NOT NULL,
    submitted INTEGER NOT NULL DEFAULT 0,
    takeovers INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, queue)
) STRICT, WITHOUT ROWID;

CREATE TABLE rejections (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    task_seq INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    task_id TEXT NOT NULL,
    verb TEXT NOT NULL,
    holder TEXT NOT NULL,
    token INTEGER NOT NULL,
    current_token INTEGER,
    reason TEXT NOT NULL,
    late_ms INTEGER,
    wall_ms INTEGER NOT NULL,
    result TEXT
) STRICT;

CREATE INDEX rejections_task ON rejections (task_seq, seq);

CREATE TABLE rejection_counts (
    tenant TEXT NOT NULL,
    reason TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (tenant, reason)
) STRICT, WITHOUT ROWID;

-- Durable work. A waiting task is due when its question runs out of time; claims find it by tasks_due_wall, sweeps here.
CREATE INDEX tasks_unanswered ON tasks (due_wall_ms) WHERE state = 'waiting' AND due_wall_ms IS NOT NULL;

CREATE TABLE steps (
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    name TEXT NOT NULL,
    slot TEXT NOT NULL,
    fingerprint TEXT,
    token INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL,
    took_ms INTEGER NOT NULL,
    cost REAL,
    value TEXT NOT NULL,
    PRIMARY KEY (task_seq, name, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE waits (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    n INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind = 'approval' OR kind = 'signal' OR kind = 'timer' OR kind = 'reconcile'),
    ask TEXT NOT NULL,
    digest TEXT NOT NULL,
    fallback TEXT,
    token INTEGER NOT NULL,
    opened_wall_ms INTEGER NOT NULL,
    due_wall_ms INTEGER,
    decision TEXT,
    value TEXT,
    decided_by TEXT,
    decided_wall_ms INTEGER
) STRICT;

CREATE UNIQUE INDEX waits_question ON waits (task_seq, name, n, digest);
CREATE INDEX waits_reconciling ON waits (name) WHERE kind = 'reconcile' AND decision IS NULL;

-- A decision is never spent, changed or lost.
CREATE TRIGGER waits_decided_once BEFORE UPDATE ON waits
WHEN OLD.decision IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'a decision stands');
END;

CREATE TABLE signals (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    name TEXT NOT NULL,
    call_id TEXT NOT NULL,
    payload TEXT NOT NULL,
    wall_ms INTEGER NOT NULL,
    taken_by INTEGER
) STRICT;

CREATE UNIQUE INDEX signals_call ON signals (task_seq, call_id);
CREATE INDEX signals_kept ON signals (task_seq, name, seq) WHERE taken_by IS NULL;

CREATE TABLE artifacts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    name TEXT NOT NULL,
    uri TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    token INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX artifacts_name ON artifacts (task_seq, name, seq);
CREATE INDEX artifacts_digest ON artifacts (sha256);

CREATE TABLE effects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    name TEXT NOT NULL,
    key TEXT,
    fingerprint TEXT NOT NULL,
    contract TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state = 'started' OR state = 'unknown' OR state = 'succeeded' OR state = 'failed'),
    tries INTEGER NOT NULL,
    token INTEGER NOT NULL,
    first_wall_ms INTEGER NOT NULL,
    send_by_wall_ms INTEGER NOT NULL,
    receipt TEXT,
    error TEXT,
    reconciled_by TEXT,
    updated_wall_ms INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    cleared INTEGER NOT NULL,
    first_ms INTEGER NOT NULL,
    send_by_ms INTEGER NOT NULL,
    starters TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX effects_id ON effects (tenant, id);
CREATE INDEX effects_task ON effects (task_seq);
CREATE INDEX effects_unsettled ON effects (tenant, seq) WHERE state = 'started' OR state = 'unknown';

-- What has happened outside stays so, whatever program writes here; a person may add the receipt that was left out.
CREATE TRIGGER effects_stay BEFORE UPDATE OF state, receipt ON effects
WHEN OLD.state = 'succeeded' AND (
    NEW.state <> 'succeeded'
    OR (NEW.receipt IS NOT OLD.receipt AND (OLD.receipt IS NOT NULL OR OLD.reconciled_by IS NULL)))
BEGIN
    SELECT RAISE(ABORT, 'a receipt stands');
END;

CREATE TABLE evidence (
    effect_seq INTEGER NOT NULL REFERENCES effects (seq),
    token INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    receipt TEXT,
    error TEXT,
    wall_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX evidence_effect ON evidence (effect_seq);

-- Values kept as files beside the store, by the digest in their address; whoever collects garbage asks these.
CREATE INDEX inputs_filed ON inputs (substr(input, 20, 64)) WHERE substr(input, 1, 19) = '{"relet:artifact":"';
CREATE INDEX results_filed ON tasks (substr(result, 20, 64)) WHERE substr(result, 1, 19) = '{"relet:artifact":"';
CREATE INDEX checkpoints_filed ON checkpoints (substr(value, 20, 64))
WHERE substr(value, 1, 19) = '{"relet:artifact":"';
CREATE INDEX rejections_filed ON rejections (substr(result, 20, 64)) WHERE substr(result, 1, 19) = '{"relet:artifact":"';
CREATE INDEX steps_filed ON steps (substr(value, 20, 64)) WHERE substr(value, 1, 19) = '{"relet:artifact":"';
