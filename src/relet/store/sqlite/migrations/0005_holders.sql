-- Processes whose leases end with them: each holds a lock on a file beside the store, of this name and inode. A lease
-- is bound by the name of the call that claimed it, so that a bound claim writes nothing more than another one.

CREATE TABLE holders (
    lock TEXT PRIMARY KEY,
    inode INTEGER NOT NULL,
    boot_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
