"""What leaves with a task: every row that tells of it, also in a file, where SQLite itself looks for none."""

from tests.store.inside import ask


def lived_through(db, clock, name):
    """A task that has a row in every table that may have one; the tokens of its leases."""
    db.submit("q", {"topic": name}, id=name, share="s")
    lease = db.claim("q", ttl=60)
    clock.advance("40s")
    lease.renew()
    lease.save(1)
    lease.attach("page", b"bytes")
    with lease.run() as run:
        run.step("look", lambda: 1)
        run.effect("send", {}, lambda *_: "sent")
        lease.park("go", timeout="1h", default="accept")
    db.signal(name, "word", 1)
    db.decide(name, "go", "accept")
    last = db.claim("q")
    last.complete("done")
    return {lease.token, last.token}


def telling(folder, task_seq, tokens):
    """How many rows of each table name the task or one of its leases."""
    found = {}
    for (table,) in ask(folder, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"):
        columns = {name for (name,) in ask(folder, f"SELECT name FROM pragma_table_info('{table}')")}
        wheres = [f"task_seq = {task_seq}"] if "task_seq" in columns else []
        if "token" in columns and table not in ("tombstones", "tasks"):
            wheres.append(f"token IN ({', '.join(map(str, sorted(tokens)))})")
        if wheres:
            found[table] = ask(folder, f"SELECT count(*) FROM {table} WHERE {' OR '.join(wheres)}")[0][0]
    return found


def test_no_table_tells_of_a_task_that_was_pruned(db, clock, tmp_path):
    db.queue("q", concurrency=9)
    gone, kept = lived_through(db, clock, "gone"), lived_through(db, clock, "kept")
    of_gone, of_kept = (telling(tmp_path, n, tokens) for n, tokens in ((1, gone), (2, kept)))
    assert of_gone == of_kept
    assert of_gone["late_beats"] == of_gone["steps"] == of_gone["signals"] == of_gone["effects"] == 1
    clock.advance("40d")
    ask(tmp_path, "UPDATE tasks SET updated_wall_ms = ? WHERE id = 'kept'", clock.wall_ms())
    assert db.prune("30d").ids == ["gone"]
    ask(tmp_path, "DELETE FROM places")  # the next claim that counts does it
    assert not any(telling(tmp_path, 1, gone).values())
    assert telling(tmp_path, 2, kept) == {**of_kept, "places": 0}
    assert ask(tmp_path, "PRAGMA foreign_key_check") == []


def test_a_late_renewal_does_not_keep_a_store_from_being_whole_once_its_task_has_left(db, clock, tmp_path):
    db.submit("q", id="t")
    lease = db.claim("q", ttl=60)
    clock.advance("40s")
    lease.renew()
    lease.complete("done")
    db.submit("elsewhere")
    clock.advance("1d")
    assert db.prune("1d").ids == ["t"]
    assert db.verify().findings == []
    assert db.backup(tmp_path / "backup.db").tasks == 1
