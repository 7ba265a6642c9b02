-- Statements of upgrade.py alone; it holds the file by itself.

-- name: set_least
-- the single row; what a later relet has asked for stands
UPDATE meta SET min_reader = max(min_reader, :reader), min_writer = max(min_writer, :writer) WHERE one = 1
