"""A store of the former schema: refused with the way out, migrated as a whole or not at all, by an operator alone."""

import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import relet
from relet.core.errors import Conflict, UpgradeRequired
from relet.store.migrate import SCHEMA, migrations
from relet.store.sqlite.restore import restore
from relet.store.sqlite.upgrade import migrate
from relet.store.sqlite.verify import verify_file
from tests.upgrade.conftest import PROGRAMS

KILLED = -9


def schema_of(path):
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        assert connection.pragma("integrity_check") == "ok"
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        assert ("tombstones" in tables) == (connection.pragma("user_version") > 1)
        return connection.pragma("user_version")
    finally:
        connection.close()


@pytest.fixture
def path(url, made_by_former):
    return Path(url.removeprefix("sqlite:///"))


def test_it_is_not_opened_before_it_is_migrated(url, path, state):
    before = path.read_bytes()
    with pytest.raises(UpgradeRequired, match="relet migrate"):
        relet.connect(url)
    assert path.read_bytes() == before


def test_everything_is_there_afterwards(url, path, state, made_by_former):
    done = migrate(url)
    assert (done.was, done.schema, len(done.steps)) == (1, SCHEMA, SCHEMA - 1)
    with relet.connect(url) as db:
        assert db.result("done") == "result"
        assert db.verify().ok
        assert db.lease(made_by_former).renew() > 500
        assert db.claim("q").task_id == "ready"
    assert migrate(url).steps == []


def test_a_dry_run_changes_nothing(url, path, state):
    before = path.read_bytes()
    done = migrate(url, dry_run=True)
    assert (done.steps, done.backup, done.dry_run) == (
        [step.name for step in migrations("relet.store.sqlite", SCHEMA)[1:]],
        None,
        True,
    )
    assert path.read_bytes() == before
    assert sorted(one.name for one in path.parent.glob("work.db*")) == ["work.db", "work.db-open"]


def test_the_store_as_it_was_is_kept_and_can_be_gone_back_to(url, path, state, said_by_former):
    kept = migrate(url).backup
    assert schema_of(kept) == 1
    path.unlink()
    Path(kept).rename(path)
    assert said_by_former(url, "print(db.result('done'))") == "result\n"
    migrate(url)
    assert relet.connect(url).result("done") == "result"


def test_an_old_backup_is_migrated_before_it_is_restored(url, path, state):
    kept = migrate(url).backup
    with pytest.raises(UpgradeRequired, match="relet migrate"):
        restore(url, kept)
    migrate(f"sqlite:///{kept}")
    assert restore(url, kept).lapsed == 1


def test_it_is_refused_while_anybody_has_the_store_open(url, path, start):
    worker = start("busy.py", url, 0, former_library=True)
    assert worker.value() == 1
    worker.tell("go")
    worker.line()
    worker.wait()
    with relet_open(path), pytest.raises(Conflict) as refused:
        migrate(url)
    assert refused.value.code == "RELET-IN-USE"
    assert schema_of(path) == 1


def relet_open(path):
    """What every client holds, of whatever release."""
    import contextlib
    import fcntl

    @contextlib.contextmanager
    def held():
        with path.with_name("work.db-open").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield

    return held()


def test_killed_at_any_statement_it_leaves_the_old_store_or_the_new_one(url, path, state):
    found = []
    for n in range(1, 100):
        done = subprocess.run(
            [sys.executable, PROGRAMS / "migrate_killed.py", url, str(n)], capture_output=True, text=True, check=False
        )
        found.append(schema_of(path))
        if found[-1] == 1:
            assert done.returncode == KILLED, done.stderr
            continue
        break
    assert len(found) > 10
    assert done.stdout == "done\n" or done.returncode == KILLED
    with relet.connect(url) as db:
        assert db.result("done") == "result"
    assert verify_file(path, None).ok


def test_what_prune_left_behind_in_an_older_store_is_removed_and_counted(url, path, state):
    """Up to schema 5 a pruned task left its late renewals, and such a store could not be backed up."""
    migrate(url)
    connection = apsw.Connection(str(path))
    connection.execute("DROP TRIGGER late_beats_leave; DROP TRIGGER tombstones_failed")
    connection.execute("DROP TABLE api_keys; DROP TABLE api_audit; DROP TABLE api_audit_end")
    connection.execute(
        "ALTER TABLE totals DROP COLUMN pruned_failed; PRAGMA user_version = 5; PRAGMA foreign_keys = off"
    )
    connection.execute("INSERT INTO tombstones VALUES ('default', 'dead', 'q', 'failed', 90, NULL, 1)")
    connection.execute("INSERT INTO tombstones VALUES ('default', 'off', 'q', 'cancelled', 91, NULL, 1)")
    connection.execute("UPDATE totals SET submitted = submitted + 2, pruned = 2, pruned_undone = 2")
    connection.execute("INSERT INTO late_beats SELECT max(token), 1, 2 FROM leases")
    connection.execute("INSERT INTO late_beats VALUES (99, 1, 2)")
    connection.close()
    assert migrate(url).steps == ["0006_pruned.sql", "0007_keys.sql"]
    assert [finding.row for finding in verify_file(path, None).findings] == []
    with relet.connect(url) as db:
        assert db.backup(path.with_name("backup.db")).tasks == 3
        (queue,) = db.stats("q").queues
        assert (queue.done, queue.failed, queue.cancelled) == (1, 1, 1)
    connection = apsw.Connection(str(path))
    assert len(connection.execute("SELECT * FROM late_beats").fetchall()) == 1, "that of a lease which is there stays"
    connection.close()
