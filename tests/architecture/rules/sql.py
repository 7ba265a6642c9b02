"""What the rules of sql.yml find and let through: semgrep reads it, and nothing runs it."""


def asked(db, task_id, table, schema, dialect, quoted):
    # ruleid: no-sql-made-of-parts
    db.execute(f"SELECT * FROM tasks WHERE id = '{task_id}'")
    # ruleid: no-sql-made-of-parts
    db.execute("SELECT * FROM tasks WHERE id = '%s'" % task_id)
    # ruleid: no-sql-made-of-parts
    db.execute("SELECT * FROM tasks WHERE id = " + task_id)
    # ruleid: no-sql-made-of-parts
    db.execute("SELECT * FROM tasks WHERE id = '{}'".format(task_id), ())
    # ruleid: no-sql-made-of-parts
    db.execute("SELECT * FROM tasks ORDER BY " + ", ".join(table))
    text = f"DELETE FROM {table}"
    # ruleid: no-sql-made-of-parts
    db.cursor().executemany(text, [])
    # ok: no-sql-made-of-parts
    db.execute("SELECT * FROM tasks WHERE id = ?", (task_id,))
    # ok: no-sql-made-of-parts
    db.execute("SELECT * FROM tasks WHERE id = ?", (f"{task_id}-child",))
    # ok: no-sql-made-of-parts
    db.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(dialect.schema)}")
    # ok: no-sql-made-of-parts
    db.execute(f"DROP SCHEMA IF EXISTS {quoted(schema)} CASCADE")
