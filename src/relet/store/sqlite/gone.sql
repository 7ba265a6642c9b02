-- Statements of gone.py alone: a file whose store was copied to another place, and goes on there.

-- name: make_gone
-- a table that only such a file has
CREATE TABLE IF NOT EXISTS gone (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    place TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL
) STRICT

-- name: put_gone
-- the single row
INSERT OR REPLACE INTO gone (one, place, epoch, wall_ms) VALUES (1, :place, :epoch, :wall_ms)

-- name: read_gone
-- the single row
SELECT place, epoch, wall_ms FROM gone WHERE one = 1

-- name: drop_gone
DROP TABLE IF EXISTS gone

-- name: set_writer
-- the single row
UPDATE meta SET min_writer = :writer WHERE one = 1

-- name: read_writer
-- the single row
SELECT min_writer FROM meta WHERE one = 1
