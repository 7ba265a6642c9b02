-- Statements of adopt.py alone; it holds the write lock, and nobody else has the store open.

-- name: set_store_id
-- the single row; with the id goes the key, so that handles of the original prove nothing here
UPDATE meta SET store_id = :store_id, secret_key = :secret_key WHERE one = 1
