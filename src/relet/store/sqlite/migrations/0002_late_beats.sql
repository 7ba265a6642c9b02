-- Renewals that came late: with less than half of the ttl left. A table of its own, so that what comes in time writes
-- nothing more than before, and so that a writer that knows only the first schema goes on as it did.
CREATE TABLE late_beats (
    token INTEGER PRIMARY KEY REFERENCES leases (token) ON DELETE CASCADE,
    n INTEGER NOT NULL,
    least_left_ms INTEGER NOT NULL
) STRICT;
