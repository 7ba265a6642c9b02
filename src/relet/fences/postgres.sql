-- name: make_table
-- In a transaction of its own. Of two that make it at once one fails, and finds it made.
CREATE TABLE IF NOT EXISTS {fence} (resource text PRIMARY KEY, token bigint NOT NULL)

-- name: set_limits
-- Ends with the transaction. A holder that is stopped inside its block is ended by the server, with its lock.
SELECT set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true),
set_config('relet.resource', %s, true), set_config('relet.token', %s, true)

-- name: raise_fence
-- By primary key. Takes the row's lock, held to the end of the transaction, and compares after it has waited.
INSERT INTO {fence} AS fence (resource, token) VALUES (%s, %s)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token
RETURNING token

-- name: read_fence
-- By primary key, under the lock that the statement before it took.
SELECT token FROM {fence} WHERE resource = %s

-- name: find_table
-- The catalogue, by name; of what can have statement triggers.
SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')

-- name: make_guard
-- FOR SHARE on the fence's row: nobody raises the fence between this look and the end of the writer's transaction.
CREATE OR REPLACE FUNCTION {guard}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $guard$
DECLARE shown text := current_setting('relet.token', true); seen bigint;
BEGIN
IF coalesce(shown, '') <> '' THEN
SELECT token INTO seen FROM {fence} WHERE resource = current_setting('relet.resource', true) FOR SHARE;
END IF;
IF seen IS NULL OR seen > shown::bigint THEN
RAISE EXCEPTION 'relet: this table is guarded; write to it inside PostgresFence.write' USING ERRCODE = 'insufficient_privilege';
END IF;
RETURN NULL;
END
$guard$

-- name: guard_table
-- Takes the table's own lock for a moment. By statement and not by row: TRUNCATE is seen too.
CREATE OR REPLACE TRIGGER relet_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION {guard}()
