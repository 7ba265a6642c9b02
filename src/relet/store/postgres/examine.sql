-- Statements of examine.py alone: what a server says of itself and of a store's tables. They only read, and none of them
-- reads a row of a task.

-- name: find_role
SELECT pg_is_in_recovery(), coalesce(
    (SELECT array_agg(application_name || ' ' || sync_state ORDER BY application_name)
    FROM pg_stat_replication WHERE sync_state IS NOT NULL), '{}')

-- name: find_rights
-- the catalog alone: may this role make a store where there is none; what keeps all that it does from being written;
-- which tables and sequences it may not use as relet does
SELECT quote_ident(current_user), quote_ident(current_database()),
    coalesce((SELECT has_schema_privilege(n.oid, 'CREATE') FROM pg_namespace n WHERE n.nspname = :schema),
        has_database_privilege(current_database(), 'CREATE')),
    (SELECT s.source FROM pg_settings s WHERE s.name = 'default_transaction_read_only' AND s.setting = 'on'),
    coalesce((SELECT array_agg(c.relname::text ORDER BY c.relname::text)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = :schema AND c.relkind IN ('r', 'S') AND NOT (has_schema_privilege(n.oid, 'USAGE') AND CASE
            WHEN c.relkind = 'r' THEN has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
                AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
            ELSE has_sequence_privilege(c.oid, 'SELECT') AND has_sequence_privilege(c.oid, 'USAGE')
                AND has_sequence_privilege(c.oid, 'UPDATE') END)), '{}')

-- name: find_settings
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'max_connections',
    'superuser_reserved_connections')

-- name: find_clock
SELECT extract(epoch FROM clock_timestamp()) * 1000::double precision

-- name: find_state
-- the single row
SELECT m.version, m.min_writer, m.ahead_ms, m.steps FROM relet.meta m WHERE m.one = 1

-- name: find_gone
-- the single row of a table that only such a place has
SELECT g.place, g.wall_ms FROM relet.gone g WHERE g.one = 1

-- name: find_tables
-- the catalog, and statistics; no table is read
SELECT c.relname, coalesce(s.n_live_tup, 0), coalesce(s.n_dead_tup, 0), pg_table_size(c.oid), pg_indexes_size(c.oid),
    NOT coalesce(c.reloptions, '{}') @> '{autovacuum_enabled=false}'
        AND NOT coalesce(c.reloptions, '{}') @> '{autovacuum_enabled=off}'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
WHERE n.nspname = :schema AND c.relkind = 'r' ORDER BY c.relname

-- name: find_invalid
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND NOT (i.indisvalid AND i.indisready) ORDER BY c.relname

-- name: find_sessions
-- transactions that have been open for a while, of this database or with its tables locked, and prepared ones
SELECT a.pid, coalesce(nullif(a.application_name, ''), a.usename, '?'),
    extract(epoch FROM clock_timestamp() - a.xact_start)::bigint,
    a.state LIKE 'idle in transaction%', a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL,
    coalesce(l.tables, '{}')
FROM pg_stat_activity a LEFT JOIN LATERAL (
    SELECT array_agg(DISTINCT c.relname::text ORDER BY c.relname::text) AS tables
    FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE l.pid = a.pid AND n.nspname = :schema AND c.relkind = 'r' AND l.granted) l ON true
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_type = 'client backend'
    AND a.xact_start < clock_timestamp() - :least_s * interval '1 second'
UNION ALL
SELECT NULL, p.gid, extract(epoch FROM clock_timestamp() - p.prepared)::bigint, false, true, '{}'
FROM pg_prepared_xacts p
WHERE p.database = current_database() AND p.prepared < clock_timestamp() - :least_s * interval '1 second'
ORDER BY 3 DESC LIMIT 10

-- name: find_connections
-- of sessions of other roles one without rights sees no more than that they are there
SELECT count(*), count(*) FILTER (WHERE backend_type IS NULL)
FROM pg_stat_activity WHERE backend_type = 'client backend' OR (backend_type IS NULL AND usename IS NOT NULL)

-- name: has_artifacts
-- index artifacts_digest and the indexes of filed values, one look at each
SELECT EXISTS (SELECT 1 FROM relet.artifacts)
    OR EXISTS (SELECT 1 FROM relet.inputs WHERE substr(input, 1, 19) = '{"relet:artifact":"')
    OR EXISTS (SELECT 1 FROM relet.tasks WHERE substr(result, 1, 19) = '{"relet:artifact":"')
