-- What only PostgreSQL itself knows; its relatives do without. Applied after each migration, and again without harm.

-- name: renewals_stay_on_their_page
-- room beside each lease for its next version: a renewal touches no index, and so moves to no other page; half of it, since
-- one statement renews all leases of a page
ALTER TABLE relet.leases SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05)

-- name: tasks_are_cleaned_often
-- a task leaves three versions behind it; claims read past them until they are gone
ALTER TABLE relet.tasks SET (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05)

-- name: few_rows_written_often
ALTER TABLE relet.totals SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200)

-- name: a_run_ends_with_a_crash
-- emptied by recovery after a crash and by a promotion: then the next writer finds that there was an outage
ALTER TABLE relet.run SET UNLOGGED
