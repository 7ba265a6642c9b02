-- What is kept of late renewals leaves with its lease. Prune deletes leases where SQLite does not look for rows that
-- refer to them, so that ON DELETE CASCADE does nothing there; a trigger does, for every relet that prunes this file.
DELETE FROM late_beats WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.token = late_beats.token);

CREATE TRIGGER late_beats_leave AFTER DELETE ON leases
BEGIN
    DELETE FROM late_beats WHERE token = OLD.token;
END;
