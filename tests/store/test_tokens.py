"""Tokens only grow: over restarts, restored backups, lost side files, and programs that meddle."""

import os
import shutil
import stat
from contextlib import closing

import apsw
import pytest

from relet.core import limits
from relet.core.errors import Unavailable
from relet.store.sqlite.marks import SideFile
from relet.testing import Clock
from tests.store.inside import ask, contents, lane, path_of

BLOCK = limits.TOKEN_BLOCK
HOURS = 17_864
"""Between 2025-01-01 and the time at which the steered clock starts."""


def parts(token):
    return token >> 32, token & 0xFFFF_FFFF


def grants(db, n):
    """The tokens of n new leases, as many in one transaction as may be."""
    db.submit_many("q", range(n))
    tokens = []
    while len(tokens) < n:
        tokens += [lease.token for lease in db.claim_many("q", min(n - len(tokens), limits.CLAIM_ITEMS_MAX))]
    return tokens


def backup(folder):
    """A consistent copy of the file alone, as a backup program takes it."""
    copy = folder / "backup.db"
    copy.unlink(missing_ok=True)
    ask(folder, "VACUUM INTO ?", str(copy))
    return copy


def restore(folder, copy):
    for name in ("relet.db", "relet.db-wal", "relet.db-shm"):
        (folder / name).unlink(missing_ok=True)
    shutil.copy(copy, path_of(folder))


def side_file(folder):
    ((store_id,),) = ask(folder, "SELECT store_id FROM meta")
    return folder / "state" / store_id


def test_the_tokens_of_a_new_store_begin_at_one_and_grow_by_one(db, tmp_path):
    assert grants(db, 5) == [1, 2, 3, 4, 5]
    assert side_file(tmp_path).read_text() == f"0 {BLOCK}\n"


def test_the_mark_is_moved_before_a_token_beyond_it_is_given_out(db, tmp_path):
    assert grants(db, BLOCK)[-1] == BLOCK
    assert side_file(tmp_path).read_text() == f"0 {BLOCK}\n"
    assert grants(db, 1) == [BLOCK + 1]
    assert side_file(tmp_path).read_text() == f"0 {2 * BLOCK}\n"


def test_the_mark_is_on_disk_before_a_token_of_its_block_is_used(db, tmp_path, monkeypatch):
    grants(db, 1)
    ask(tmp_path, f"UPDATE meta SET n = {BLOCK}")
    done = []
    sync, replace = os.fsync, os.replace

    def synced(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        done.append("the folder" if is_folder else "the draft")
        sync(descriptor)

    def replaced(draft, path):
        done.append(f"the name of {os.path.basename(path)}")
        replace(draft, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    lane(db).connection().set_commit_hook(lambda: bool(done.append("the commit")))
    assert grants(db, 1) == [BLOCK + 1]
    commit_of_the_submit = done.pop(0)
    assert commit_of_the_submit == "the commit"
    assert done == ["the draft", f"the name of {side_file(tmp_path).name}", "the folder", "the commit"]


def test_whoever_opens_a_closed_store_first_gives_up_the_rest_of_the_block(connect, clock):
    with connect(clock) as db:
        assert grants(db, 3) == [1, 2, 3]
    with connect(clock) as db:
        assert grants(db, 2) == [BLOCK + 1, BLOCK + 2]


def test_whoever_opens_a_store_that_is_in_use_goes_on_where_it_is(connect, clock):
    first = connect(clock)
    assert grants(first, 2) == [1, 2]
    second = connect(clock)
    assert grants(second, 2) == [3, 4]
    first.close()
    assert grants(second, 1) == [5]


def test_looking_at_a_closed_store_gives_up_nothing(connect, clock, tmp_path):
    connect(clock).close()
    before = ask(tmp_path, "SELECT epoch, n, mark FROM meta")
    with connect(clock) as db:
        assert db.claim("q") is None
        db.submit("q", 1)
    assert ask(tmp_path, "SELECT epoch, n, mark FROM meta") == before


@pytest.mark.parametrize("more", [1, BLOCK - 1, 3 * BLOCK], ids=["within-the-block", "to-its-end", "far-beyond"])
@pytest.mark.case("PG-08")
@pytest.mark.parametrize("before", [0, 2], ids=["before-any-token", "after-some"])
def test_after_a_restore_every_token_is_above_all_that_were_ever_issued(connect, clock, tmp_path, before, more):
    with connect(clock) as db:
        grants(db, before)
        copy = backup(tmp_path)
        issued = grants(db, more)
    restore(tmp_path, copy)
    with connect(clock) as db:
        fresh = grants(db, 2)
    assert min(fresh) > max(issued)
    assert max(fresh) <= limits.TOKEN_MAX


def test_a_restore_over_and_over_never_repeats_a_token(connect, clock, tmp_path):
    seen = []
    with connect(clock) as db:
        seen += grants(db, 1)
        copy = backup(tmp_path)
    for _ in range(5):
        restore(tmp_path, copy)
        with connect(clock) as db:
            seen += grants(db, 2)
    assert seen == sorted(set(seen))


def test_a_lost_side_file_begins_a_new_epoch_above_the_hours_since_2025(connect, clock, tmp_path):
    with connect(clock) as db:
        grants(db, 3)
    shutil.rmtree(tmp_path / "state")
    with connect(clock) as db:
        assert [parts(token) for token in grants(db, 2)] == [(HOURS + 1, 1), (HOURS + 1, 2)]
    assert side_file(tmp_path).read_text() == f"{HOURS + 1} {BLOCK}\n"


def test_a_side_file_behind_the_store_begins_a_new_epoch_too(connect, clock, tmp_path):
    with connect(clock) as db:
        grants(db, BLOCK + 1)
    side_file(tmp_path).write_text(f"0 {BLOCK}\n")
    with connect(clock) as db:
        assert parts(grants(db, 1)[0]) == (HOURS + 1, 1)


def test_the_epoch_is_above_store_and_side_file_even_under_a_clock_that_is_behind(connect, clock, tmp_path):
    clock.step(-86_400 * 365 * 20)
    with connect(clock) as db:
        grants(db, 1)
    side_file(tmp_path).write_text("41 5\n")
    with connect(clock) as db:
        assert parts(grants(db, 1)[0]) == (42, 1)
    shutil.rmtree(tmp_path / "state")
    with connect(clock) as db:
        assert parts(grants(db, 1)[0]) == (43, 1)


def test_the_last_number_of_an_epoch_is_followed_by_the_first_of_the_next(db, tmp_path):
    grants(db, 1)
    last = (1 << 32) - 1
    ask(tmp_path, f"UPDATE meta SET n = {last - 1}, mark = {last + BLOCK}")
    tokens = grants(db, 3)
    assert [parts(token) for token in tokens] == [(0, last), (1, 1), (1, 2)]
    assert side_file(tmp_path).read_text() == f"1 {BLOCK}\n"


def test_a_store_that_was_closed_in_the_last_block_of_an_epoch_goes_on_in_the_next(connect, clock, tmp_path):
    last = (1 << 32) - 1
    with connect(clock) as db:
        grants(db, 1)
        ask(tmp_path, f"UPDATE meta SET n = {last - BLOCK}, mark = {last - BLOCK}")
        assert parts(grants(db, 1)[0]) == (0, last - BLOCK + 1)
    with connect(clock) as db:
        assert [parts(token) for token in grants(db, 2)] == [(1, 1), (1, 2)]


@pytest.mark.parametrize(
    "meddle",
    [
        "UPDATE meta SET n = n - 1",
        "UPDATE meta SET epoch = 0, n = 999",
        "DELETE FROM meta",
        "UPDATE leases SET token = 0 WHERE token = 2",
    ],
)
def test_no_program_can_take_a_token_back(db, tmp_path, meddle):
    grants(db, 2)
    ask(tmp_path, "UPDATE meta SET epoch = 1, n = 1, mark = 1")
    before = ask(tmp_path, "SELECT * FROM meta")
    with closing(apsw.Connection(str(path_of(tmp_path)))) as connection, pytest.raises(apsw.ConstraintError):
        connection.execute(meddle)
    assert ask(tmp_path, "SELECT * FROM meta") == before


def test_tokens_go_on_when_every_row_was_deleted(db, tmp_path):
    last = grants(db, 3)[-1]
    with closing(apsw.Connection(str(path_of(tmp_path)))) as connection:
        connection.pragma("foreign_keys", False)
        for table in ("checkpoints", "events", "leases", "inputs", "tasks"):
            connection.execute(f"DELETE FROM {table}")
    assert grants(db, 1)[0] > last


def rubbish(folder):
    side_file(folder).write_text("not a mark")


def a_folder(folder):
    side_file(folder).unlink()
    side_file(folder).mkdir()


def a_file_in_place_of_the_folder(folder):
    shutil.rmtree(folder / "state")
    (folder / "state").write_text("x")


@pytest.mark.parametrize("spoil", [rubbish, a_folder, a_file_in_place_of_the_folder])
def test_without_a_usable_side_file_nothing_is_granted(connect, clock, tmp_path, spoil):
    with connect(clock) as db:
        grants(db, 1)
        db.submit("q", 1)
    spoil(tmp_path)
    with connect(clock) as db:
        before = contents(tmp_path)
        with pytest.raises(Unavailable, match="without it a restored backup could give out tokens again") as refused:
            db.claim("q")
        assert refused.value.code == "RELET-STATE-DIR"
        assert contents(tmp_path) == before


def test_a_mark_that_could_not_be_written_gives_out_no_token(db, tmp_path, monkeypatch):
    db.submit("q", 1, id="t")
    before = contents(tmp_path)

    def full(_file, _mark):
        raise Unavailable("no room", code="RELET-STATE-DIR")

    with monkeypatch.context() as broken:
        broken.setattr(SideFile, "write", full)
        with pytest.raises(Unavailable, match="no room"):
            db.claim("q")
    assert contents(tmp_path) == before
    assert db.claim("q").task_id == "t"


def test_a_grant_that_was_undone_after_its_mark_was_written_repeats_no_token(connect, clock, tmp_path):
    with connect(clock) as db:
        db.submit("q", 1)
        lane(db).connection().execute(
            "CREATE TEMP TRIGGER no BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        with pytest.raises(Unavailable, match="no"):
            db.claim("q")
        lane(db).connection().execute("DROP TRIGGER no")
        first = db.claim("q").token
    with connect(clock) as db:
        db.submit("q", 2)
        assert db.claim("q").token > first


def test_a_secret_proves_one_token_of_one_store(connect, clock, tmp_path):
    with connect(clock) as db:
        db.submit_many("q", [1, 2])
        secrets = [lease.belief.grant.handle.secret for lease in db.claim_many("q", 2)]
    (tmp_path / "other").mkdir()
    other = connect(Clock(), tmp_path / "other")
    other.submit("q", 1)
    secrets.append(other.claim("q").belief.grant.handle.secret)
    assert len(set(secrets)) == 3
    assert all(len(secret) == 32 for secret in secrets)
