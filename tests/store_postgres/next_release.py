"""A release after this one, as far as a migration goes: what it adds beside clients of now, and what it takes."""

import shutil

from relet.store.postgres.upgrade import THIS, Release

PRE = """\
-- Columns and a table that nobody of now knows of, and an index over one of them.
ALTER TABLE relet.tasks ADD COLUMN IF NOT EXISTS colour text;
ALTER TABLE relet.leases ADD COLUMN IF NOT EXISTS shade integer NOT NULL DEFAULT 7;
ALTER TABLE relet.effects ADD COLUMN IF NOT EXISTS shade text;
CREATE TABLE IF NOT EXISTS relet.colours (
    name text PRIMARY KEY,
    shade integer
);
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_colour ON relet.tasks (colour, seq) WHERE colour IS NOT NULL;
"""
POST = """\
DROP INDEX CONCURRENTLY IF EXISTS relet.tasks_unanswered;
ALTER TABLE relet.tasks ADD CONSTRAINT tasks_coloured CHECK (colour IS NOT NULL) NOT VALID;
ALTER TABLE relet.rejections DROP COLUMN verb;
"""


def next_release(folder, pre=PRE, post=POST, min_writer=2):
    """The migrations of now and one more, in a folder."""
    folder.mkdir(parents=True)
    for file in THIS.folder.glob("*.sql"):
        shutil.copy(file, folder)
    (folder / "0002_colours.sql").write_text(pre, encoding="utf-8")
    if post:
        (folder / "0002_colours.post.sql").write_text(post, encoding="utf-8")
    return Release(folder, THIS.schema + 1, 1, min_writer)
