-- API keys of the service, and the log of what was done with them. An older relet goes on beside both: it knows of
-- neither, and neither refers to what it writes.

CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    -- Of the whole key. What is shown must have it; nothing here opens anything.
    digest TEXT NOT NULL,
    name TEXT NOT NULL,
    tenant TEXT NOT NULL,
    role TEXT NOT NULL,
    scopes TEXT NOT NULL,
    queues TEXT,
    created_wall_ms INTEGER NOT NULL,
    expires_wall_ms INTEGER,
    revoked_wall_ms INTEGER,
    used_wall_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX api_keys_name ON api_keys (name) WHERE revoked_wall_ms IS NULL;
CREATE INDEX api_keys_names ON api_keys (name);

-- Only ever appended to, without a gap; each line's digest is of the line and of the digest before it.
CREATE TABLE api_audit (
    seq INTEGER PRIMARY KEY,
    wall_ms INTEGER NOT NULL,
    key_id TEXT,
    key_name TEXT,
    tenant TEXT,
    operation TEXT NOT NULL,
    target TEXT,
    outcome TEXT NOT NULL,
    address TEXT,
    digest TEXT NOT NULL
) STRICT;

CREATE INDEX api_audit_tenant ON api_audit (tenant, seq);

-- The last line, so that it is missed when it is removed.
CREATE TABLE api_audit_end (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL,
    digest TEXT NOT NULL
) STRICT;
