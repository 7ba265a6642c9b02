-- Fair turns between the shares of a queue, and its limits. Only what is new: a relet of schema 1 goes on writing
-- beside it, without an eye for turns and limits.

ALTER TABLE queues ADD COLUMN concurrency INTEGER;
ALTER TABLE queues ADD COLUMN share_concurrency INTEGER;
ALTER TABLE queues ADD COLUMN rate INTEGER;
ALTER TABLE queues ADD COLUMN rate_ms INTEGER;
-- State, moved by claims alone: the first task that may have a share, who was served last, when the bucket is full.
ALTER TABLE queues ADD COLUMN shared_from INTEGER;
ALTER TABLE queues ADD COLUMN last_share TEXT;
ALTER TABLE queues ADD COLUMN full_us INTEGER;

-- Tasks without a share are in no index but the old one.
CREATE INDEX tasks_share ON tasks (tenant, queue, share, priority DESC, seq, kind)
WHERE share IS NOT NULL AND state = 'ready' AND delayed = 0;

-- Where shares are, a task without one gets the mark of those: whoever submits it, and however old its relet is.
CREATE TRIGGER tasks_without_share AFTER INSERT ON tasks
WHEN NEW.share IS NULL AND EXISTS (
    SELECT 1 FROM queues q WHERE q.tenant = NEW.tenant AND q.name = NEW.queue AND q.shared_from IS NOT NULL)
BEGIN
    UPDATE tasks SET share = char(1) WHERE seq = NEW.seq;
END;

-- The leases of queues with a limit. Ended ones are cleared by the next claim that counts: ending a lease writes
-- nothing here, so that it costs the same whether there are limits or not.
CREATE TABLE places (
    tenant TEXT NOT NULL,
    queue TEXT NOT NULL,
    share TEXT NOT NULL,
    token INTEGER NOT NULL,
    PRIMARY KEY (tenant, queue, share, token)
) STRICT, WITHOUT ROWID;
