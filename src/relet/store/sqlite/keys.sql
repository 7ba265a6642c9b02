-- API keys and the audit log. What writes runs inside BEGIN IMMEDIATE; each block says which index keeps it quick.

-- name: insert_api_key
-- primary key, and index api_keys_name: of one name there is one that is not revoked
INSERT INTO api_keys (
    id, digest, name, tenant, role, scopes, queues, created_wall_ms, expires_wall_ms, revoked_wall_ms, used_wall_ms)
VALUES (
    :id, :digest, :name, :tenant, :role, :scopes, :queues, :created_wall_ms, :expires_wall_ms, :revoked_wall_ms,
    :used_wall_ms)
ON CONFLICT DO NOTHING RETURNING id

-- name: find_api_keys_of
-- primary key, once for each id
SELECT id, digest, name, tenant, role, scopes, queues, created_wall_ms, expires_wall_ms, revoked_wall_ms, used_wall_ms
FROM api_keys WHERE id IN (SELECT value FROM json_each(:ids))

-- name: find_api_key_named
-- index api_keys_names: the few that ever had the name
SELECT id, digest, name, tenant, role, scopes, queues, created_wall_ms, expires_wall_ms, revoked_wall_ms, used_wall_ms
FROM api_keys WHERE name = :name ORDER BY revoked_wall_ms IS NOT NULL, created_wall_ms DESC LIMIT 1

-- name: find_api_keys
-- primary key
SELECT id, digest, name, tenant, role, scopes, queues, created_wall_ms, expires_wall_ms, revoked_wall_ms, used_wall_ms
FROM api_keys WHERE id > :after AND (:revoked OR revoked_wall_ms IS NULL) ORDER BY id LIMIT :limit

-- name: revoke_api_key
-- primary key
UPDATE api_keys SET revoked_wall_ms = coalesce(revoked_wall_ms, :wall_ms) WHERE id = :id

-- name: note_use
-- primary key
UPDATE api_keys SET used_wall_ms = max(coalesce(used_wall_ms, 0), :wall_ms) WHERE id = :id

-- name: lock_audit_end
-- the single row
INSERT INTO api_audit_end (one, seq, digest) VALUES (1, 0, '') ON CONFLICT (one) DO UPDATE SET seq = seq
RETURNING seq, digest

-- name: add_audit
-- primary key, at its end
INSERT INTO api_audit (seq, wall_ms, key_id, key_name, tenant, operation, target, outcome, address, digest)
VALUES (:seq, :wall_ms, :key_id, :key_name, :tenant, :operation, :target, :outcome, :address, :digest)

-- name: move_audit_end
-- the single row
UPDATE api_audit_end SET seq = :seq, digest = :digest WHERE one = 1

-- name: find_audit
-- primary key, from its end
SELECT seq, wall_ms, key_id, key_name, tenant, operation, target, outcome, address, digest
FROM api_audit WHERE seq < :before ORDER BY seq DESC LIMIT :limit

-- name: find_audit_of
-- index api_audit_tenant, from its end
SELECT seq, wall_ms, key_id, key_name, tenant, operation, target, outcome, address, digest
FROM api_audit WHERE tenant = :tenant AND seq < :before ORDER BY seq DESC LIMIT :limit

-- name: find_audit_after
-- primary key, from its start or from a line on
SELECT seq, wall_ms, key_id, key_name, tenant, operation, target, outcome, address, digest
FROM api_audit WHERE seq > :after AND seq < :before ORDER BY seq LIMIT :limit

-- name: find_audit_after_of
-- index api_audit_tenant, from its start or from a line on
SELECT seq, wall_ms, key_id, key_name, tenant, operation, target, outcome, address, digest
FROM api_audit WHERE tenant = :tenant AND seq > :after AND seq < :before ORDER BY seq LIMIT :limit

-- name: remove_audit
-- primary key, from its start
DELETE FROM api_audit WHERE seq <= :upto
