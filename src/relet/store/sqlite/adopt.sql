-- Statements of adopt.py alone; it holds the write lock, and nobody else has the store open.

-- name: set_store_id
-- the single row
UPDATE meta SET store_id = :store_id WHERE one = 1
