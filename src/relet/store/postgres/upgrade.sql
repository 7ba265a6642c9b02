-- Statements of upgrade.py alone.

-- name: read_state
-- the single row
SELECT m.version, m.min_reader, m.min_writer FROM relet.meta m WHERE m.one = 1

-- name: make_turn
-- primary key (tenant, name); no tenant has an empty name
INSERT INTO relet.keys (tenant, name) VALUES ('', 'migrate') ON CONFLICT DO NOTHING

-- name: take_turn
-- primary key (tenant, name), locked for as long as its transaction is open
SELECT name FROM relet.keys WHERE tenant = '' AND name = 'migrate' FOR UPDATE SKIP LOCKED

-- name: lock_meta_row
-- the single row; outages are settled and schemas changed one at a time
SELECT m.version FROM relet.meta m WHERE m.one = 1 FOR UPDATE

-- name: set_version
-- the single row; what a later relet has written stands
UPDATE relet.meta SET version = greatest(version, :version) WHERE one = 1

-- name: set_least
-- the single row; what a later relet has asked for stands
UPDATE relet.meta SET min_reader = greatest(min_reader, :reader), min_writer = greatest(min_writer, :writer)
WHERE one = 1

-- name: is_index_valid
SELECT i.indisvalid AND i.indisready FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = :schema AND c.relname = :name

-- name: find_blockers
-- whoever has a lock on one of the tables, oldest transaction first
SELECT a.pid, coalesce(nullif(a.application_name, ''), a.usename, '?'),
    extract(epoch FROM clock_timestamp() - a.xact_start)::bigint
FROM pg_stat_activity a
WHERE a.xact_start IS NOT NULL AND a.pid <> pg_backend_pid() AND a.pid <> :guard AND a.pid IN (
    SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = :schema)
ORDER BY a.xact_start LIMIT 3
