-- name: make_table
-- Within the write transaction that needs it: whoever comes second finds it made.
CREATE TABLE IF NOT EXISTS relet_fence (resource TEXT PRIMARY KEY, token INTEGER NOT NULL) WITHOUT ROWID

-- name: raise_fence
-- By primary key, under the write lock of BEGIN IMMEDIATE: nobody raises between this and the commit.
INSERT INTO relet_fence (resource, token) VALUES (?1, ?2)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE token <= excluded.token

-- name: read_fence
-- By primary key, under the same lock: a larger token than ours means that ours was not taken.
SELECT token FROM relet_fence WHERE resource = ?1

-- name: find_table
-- The schema, under the same lock; SQLite compares names of tables without case.
SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE

-- name: guard_table
-- Relies on no lock: what a connection writes outside a block of ours has no token, or not even the function.
CREATE TRIGGER IF NOT EXISTS {trigger} BEFORE {verb} ON {table} BEGIN
SELECT RAISE(ABORT, 'relet: this table is guarded; write to it inside SqliteFence.write') WHERE relet_token() IS NULL;
END
