"""The embedded engine: one SQLite file on one machine, through apsw."""
