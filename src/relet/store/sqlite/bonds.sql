-- Leases that end with a process; see statements.sql for how locks and indexes are spoken of.

-- name: lock_bound
-- index leases_open: the few that are held; asked when a process is proven to be dead
SELECT l.* FROM leases l INDEXED BY leases_open
WHERE l.ended IS NULL AND substr(l.call_id, 1, length(:bond)) = :bond ORDER BY l.token LIMIT :limit

-- name: loosen_lease
-- primary key; the call has been answered, so that nobody asks for its name again
UPDATE leases SET call_id = NULL WHERE token = :token

-- name: put_holder
-- primary key, once for each process that binds
INSERT INTO holders (lock, inode, boot_id) VALUES (:lock, :inode, :boot_id)

-- name: drop_holder
-- primary key
DELETE FROM holders WHERE lock = :lock

-- name: find_holders
-- the whole table: a row for each worker of this machine
SELECT lock, inode, boot_id FROM holders
