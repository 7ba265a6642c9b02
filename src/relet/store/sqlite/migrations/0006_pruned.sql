-- Nothing is left of what was pruned but its tombstone, and nothing is missing in the figures.

-- What is kept of late renewals leaves with its lease. Prune deletes leases where SQLite does not look for rows that
-- refer to them, so that ON DELETE CASCADE does nothing there; a trigger does, for every relet that prunes this file.
DELETE FROM late_beats WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.token = late_beats.token);

CREATE TRIGGER late_beats_leave AFTER DELETE ON leases
BEGIN
    DELETE FROM late_beats WHERE token = OLD.token;
END;

-- How many of the pruned had failed, so that figures stay as they were. By a trigger too: whoever prunes writes a
-- tombstone, and a relet of schema 3 to 5 knows nothing of this column.
ALTER TABLE totals ADD COLUMN pruned_failed INTEGER NOT NULL DEFAULT 0;
UPDATE totals SET pruned_failed = (
    SELECT count(*) FROM tombstones g WHERE g.tenant = totals.tenant AND g.queue = totals.queue AND g.state = 'failed');

CREATE TRIGGER tombstones_failed AFTER INSERT ON tombstones WHEN NEW.state = 'failed'
BEGIN
    UPDATE totals SET pruned_failed = pruned_failed + 1 WHERE tenant = NEW.tenant AND queue = NEW.queue;
END;
