-- Statements of restore.py alone, on a copy that nobody else knows of.

-- name: expire_all_open
-- index leases_open; whoever held one when the backup was made cannot prove it any more, and that is no loss
UPDATE leases SET expires_ms = min(expires_ms, :now_ms), check_ms = min(check_ms, :now_ms), excused = 1
WHERE ended IS NULL

-- name: count_started
-- index effects_unsettled, the whole of it
SELECT count(*) FROM effects WHERE state = 'started'
