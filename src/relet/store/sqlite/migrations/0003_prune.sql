-- Finished tasks may leave; what stays of one keeps its id from a second life, whatever relet writes here.

ALTER TABLE queues ADD COLUMN retention_ms INTEGER;
ALTER TABLE totals ADD COLUMN pruned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE totals ADD COLUMN pruned_undone INTEGER NOT NULL DEFAULT 0;
ALTER TABLE totals ADD COLUMN pruned_takeovers INTEGER NOT NULL DEFAULT 0;

CREATE TABLE tombstones (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    token INTEGER NOT NULL,
    result_digest TEXT,
    pruned_wall_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- For writers that know nothing of tombstones; one that does looks before it inserts.
CREATE TRIGGER tasks_gone BEFORE INSERT ON tasks
WHEN EXISTS (SELECT 1 FROM tombstones t WHERE t.tenant = NEW.tenant AND t.id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'RELET-GONE: the task of this id was pruned, and an id gets no second life');
END;
