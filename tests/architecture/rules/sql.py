"""What the rules of sql.yml find and let through: semgrep reads it, and nothing runs it.

Of two with one end the first is for all files but a few, which the `other` one is for: there it lets a line through.
"""


def asked(db, task_id, table, schema, dialect, quoted):
    # ruleid: no-sql-made-of-parts, no-other-sql-made-of-parts
    db.execute(f"SELECT * FROM tasks WHERE id = '{task_id}'")
    # ruleid: no-sql-made-of-parts, no-other-sql-made-of-parts
    db.execute("SELECT * FROM tasks WHERE id = '%s'" % task_id)
    # ruleid: no-sql-made-of-parts, no-other-sql-made-of-parts
    db.execute("SELECT * FROM tasks WHERE id = " + task_id)
    # ruleid: no-sql-made-of-parts, no-other-sql-made-of-parts
    db.execute("SELECT * FROM tasks WHERE id = '{}'".format(task_id), ())
    # ruleid: no-sql-made-of-parts, no-other-sql-made-of-parts
    db.execute("SELECT * FROM tasks ORDER BY " + ", ".join(table))
    text = f"DELETE FROM {table}"
    # ruleid: no-sql-made-of-parts, no-other-sql-made-of-parts
    db.cursor().executemany(text, [])
    # ok: no-sql-made-of-parts, no-other-sql-made-of-parts
    db.execute("SELECT * FROM tasks WHERE id = ?", (task_id,))
    # ok: no-sql-made-of-parts, no-other-sql-made-of-parts
    db.execute("SELECT * FROM tasks WHERE id = ?", (f"{task_id}-child",))
    # ruleid: no-sql-made-of-parts
    db.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(dialect.schema)}")
    # ruleid: no-sql-made-of-parts
    db.execute(f"DROP SCHEMA IF EXISTS {quoted(schema)} CASCADE")
