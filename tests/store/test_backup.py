"""Backups and what goes on from them: whole, verified, and no token given out twice."""

import hashlib
import os
import shutil
import threading
from pathlib import Path

import msgspec
import pytest

import relet
from relet.core.errors import Conflict, Error, Invalid, LeaseLost, NotFound, Unavailable
from relet.core.model import Cause, State
from relet.core.rules.renew import Renew
from relet.core.rules.save import Save
from relet.core.rules.start_effect import StartEffect
from relet.core.work import Contract, ContractKind, EffectState
from relet.store.sqlite import restore as restoring
from relet.store.sqlite.marks import SideFile
from relet.store.sqlite.restore import restore
from relet.store.sqlite.verify import verify_file
from relet.testing import store
from tests.store.inside import ask


@pytest.fixture
def put_back(clock, tmp_path):
    def put_back(backup, **options):
        return restore(f"sqlite:///{tmp_path}/relet.db", backup, clock=clock, state=tmp_path / "state", **options)

    return put_back


@pytest.fixture
def backed_up(db, tmp_path):
    """A store with one lease held, one waiting, one effect under way; and the backup of it."""
    db.submit_many("q", range(4), ids=["held", "waiting", "done", "ready"])
    held = db.claim(task_id="held", ttl=600)
    held.save("so far")
    db.claim(task_id="waiting").park("go")
    db.claim(task_id="done").complete("result")
    db.backend.call(StartEffect(
        handle=held.belief.grant.handle, name="charge", payload=msgspec.Raw(b"{}"),
        contract=Contract(kind=ContractKind.OPAQUE), timeout_ms=1_000, call_id="c-1",
    ))  # fmt: skip
    return held, db.backup(tmp_path / "backup.db")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_backup_is_a_whole_store_of_its_own_that_nobody_else_can_read(db, tmp_path, backed_up):
    _, made = backed_up
    path = tmp_path / "backup.db"
    assert (made.place, made.backup, made.tasks) == (db.place, str(path), 4)
    assert made.bytes == path.stat().st_size
    assert path.stat().st_mode & 0o777 == 0o600
    assert verify_file(path, None).ok
    assert "backup.db.part" not in str(names(tmp_path))


def test_a_backup_names_the_bytes_that_are_not_in_it(db, tmp_path):
    db.submit("q", id="t")
    db.claim("q").attach("page", b"bytes")
    made = db.backup(tmp_path / "backup.db")
    assert (made.artifacts, made.artifacts_at) == (1, f"{tmp_path}/relet.db-artifacts")


def test_a_backup_is_one_moment_while_others_write(db, connect, clock, tmp_path):
    other, ending = connect(clock), threading.Event()

    def write():
        n = 0
        while not ending.is_set():
            other.submit("q", n, id=f"t-{n}")
            other.claim(task_id=f"t-{n}").complete(n)
            n += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = [db.backup(tmp_path / f"backup-{n}.db") for n in range(5)]
    finally:
        ending.set()
        writer.join()
    assert [one.tasks for one in made] == sorted(one.tasks for one in made)
    assert all(verify_file(tmp_path / f"backup-{n}.db", None).ok for n in range(5))


def test_a_file_that_is_there_is_never_written_over(db, tmp_path):
    (tmp_path / "kept.txt").write_text("words")
    for taken in ("kept.txt", "relet.db"):
        with pytest.raises(Conflict, match="left as it is") as refused:
            db.backup(tmp_path / taken)
        assert refused.value.code == "RELET-EXISTS"
    assert (tmp_path / "kept.txt").read_text() == "words"
    with pytest.raises(Unavailable, match="mkdir"):
        db.backup(tmp_path / "absent" / "backup.db")
    with pytest.raises(Invalid):
        db.backup("")


def test_a_store_that_is_not_whole_gives_no_backup(db, tmp_path):
    db.submit("q", id="t")
    db.backend.store._write.connection().execute("UPDATE tasks SET attempt = 9")
    with pytest.raises(Unavailable, match="attempt is 9") as refused:
        db.backup(tmp_path / "backup.db")
    assert refused.value.code == "RELET-NOT-WHOLE"
    assert not (tmp_path / "backup.db").exists()
    assert os.path.exists(refused.value.detail["path"])


def test_a_store_in_memory_can_be_backed_up(tmp_path):
    with relet.connect("sqlite://") as db:
        db.submit("q", id="t")
        assert db.backup(tmp_path / "backup.db").tasks == 1


def test_nobody_holds_anything_after_a_restore_and_it_was_no_loss(db, connect, clock, backed_up, put_back):
    held, made = backed_up
    db.close()
    done = put_back(made.backup)
    assert (done.lapsed, done.unknown) == (1, 1)
    db = connect(clock)
    task = db.task("held")
    assert (task.state, task.attempt, task.losses) == (State.READY, 1, 0)
    assert [event.kind for event in db.history("held")][-1] is Cause.LAPSED
    assert [effect.state for effect in db.effects()] == [EffectState.UNKNOWN]
    with pytest.raises(LeaseLost):
        db.lease(held.handle).save("late")
    assert db.checkpoints("held")[0].value == "so far"
    assert (db.task("waiting").state, db.result("done")) == (State.WAITING, "result")
    assert db.verify().ok


def test_a_lease_that_is_newer_than_the_backup_is_lost_like_any_other(db, connect, clock, backed_up, put_back):
    """Its secret proves that this store granted it, though no row does."""
    _, made = backed_up
    db.submit("q", id="since")
    again, new = db.claim(task_id="ready", ttl=600), db.claim(task_id="since", ttl=600)
    db.close()
    put_back(made.backup)
    db = connect(clock)
    for lease in (again, new):
        with pytest.raises(LeaseLost, match="a backup made before this lease was granted") as lost:
            db.lease(lease.handle)
        assert (lost.value.code, lost.value.reason, lost.value.token) == ("RELET-RESTORED", "expired", lease.token)
    newest = db.claim(task_id="ready")
    for verb in (Renew(handles=[handle_of(again)]), Save(handle=handle_of(again), name="n", value=msgspec.Raw(b"1"))):
        (refused,) = answers_of(db, verb)
        assert (refused.code, refused.reason, refused.current_token) == (
            "RELET-RESTORED", "superseded", newest.token,
        )  # fmt: skip
    with pytest.raises(NotFound) as never:
        db.lease(f"{again.handle[:-1]}{'0' if again.handle[-1] != '0' else '1'}")
    assert never.value.code == "RELET-HANDLE"


def handle_of(lease):
    return lease.belief.grant.handle


def answers_of(db, verb):
    try:
        answer = db.backend.call(verb)
    except Error as refused:
        return [refused]
    return answer if isinstance(answer, list) else [answer]


def test_sq_08_every_token_after_a_restore_is_larger_than_any_before(db, connect, clock, tmp_path, put_back):
    db.submit_many("q", range(60))
    tokens = [lease.token for lease in db.claim_many("q", 20)]
    made = db.backup(tmp_path / "backup.db")
    tokens += [lease.token for lease in db.claim_many("q", 20)]
    db.close()
    for _ in range(2):
        done = put_back(made.backup)
        db = connect(clock)
        fresh = db.claim_many("q", 3)
        assert min(lease.token for lease in fresh) > max(*tokens, done.tokens_above)
        tokens += [lease.token for lease in fresh]
        db.close()
    assert len(set(tokens)) == len(tokens)


def test_pg_08_neither_the_side_file_nor_the_replaced_store_need_be_there(db, connect, clock, tmp_path, put_back):
    db.submit_many("q", range(9))
    tokens = [lease.token for lease in db.claim_many("q", 3)]
    made = db.backup(tmp_path / "backup.db")
    tokens += [lease.token for lease in db.claim_many("q", 3)]
    db.close()
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "relet.db").unlink()
    assert put_back(made.backup).replaced is None
    assert connect(clock).claim("q").token > max(tokens)


def test_a_token_that_was_seen_in_use_is_a_floor(db, connect, clock, tmp_path, put_back):
    made = db.backup(tmp_path / "backup.db")
    db.close()
    done = put_back(made.backup, above=900_000 << 32 | 5)
    assert done.epoch == 900_001


def test_the_file_that_was_there_is_kept_with_all_that_was_committed(db, tmp_path, backed_up, put_back):
    _, made = backed_up
    db.submit("q", id="since")
    db.close()
    done = put_back(made.backup)
    assert done.replaced.startswith(f"{tmp_path}/relet.db.replaced-")
    assert ask(tmp_path, "SELECT count(*) FROM tasks") == [(4,)]
    assert not [name for name in names(tmp_path) if name.endswith(("-wal", "-shm", "-restoring"))]
    assert verify_file(done.replaced, None).tasks == 5


def test_a_restore_is_refused_while_anybody_has_the_store_open(db, tmp_path, backed_up, put_back):
    _, made = backed_up
    before = names(tmp_path)
    with pytest.raises(Conflict, match="relet restore") as refused:
        put_back(made.backup)
    assert refused.value.code == "RELET-IN-USE"
    assert names(tmp_path) == before
    assert refused.value.detail["pids"] == [os.getpid()]
    db.close()
    put_back(made.backup)


def test_what_is_no_backup_of_this_store_changes_nothing(db, tmp_path, backed_up, put_back):
    db.close()
    with store() as other:
        foreign = other.backup(tmp_path / "foreign.db").backup
    (tmp_path / "words.txt").write_text("words" * 200)
    shutil.copy(tmp_path / "backup.db", tmp_path / "relet-broken.db")
    ask(tmp_path, "UPDATE tasks SET attempt = 9", path=tmp_path / "relet-broken.db")
    before = (tmp_path / "relet.db").read_bytes()
    for backup, error, code in [
        (foreign, Conflict, "RELET-OTHER-STORE"), (tmp_path / "words.txt", Unavailable, "RELET-DAMAGED"),
        (tmp_path / "absent.db", NotFound, None), (tmp_path / "relet.db", Invalid, None),
        (tmp_path / "relet-broken.db", Unavailable, "RELET-NOT-WHOLE"),
    ]:  # fmt: skip
        with pytest.raises(error) as refused:
            put_back(backup)
        assert code in (None, refused.value.code)
    assert (tmp_path / "relet.db").read_bytes() == before


@pytest.mark.parametrize("step", ["_copy", "_renew", "_set_aside", "sync_path"])
def test_broken_off_at_any_step_the_store_is_the_old_one_or_the_new_one(
    db, connect, clock, tmp_path, backed_up, put_back, step, monkeypatch
):
    held, made = backed_up
    db.close()
    real = getattr(restoring, step)

    def broken(*args):
        real(*args)
        raise OSError(step)

    with monkeypatch.context() as patch:
        patch.setattr(restoring, step, broken)
        with pytest.raises(Unavailable, match=f"was not restored: {step}"):
            put_back(made.backup)
    with connect(clock) as old:
        assert old.lease(held.handle).status == "held"
        old.submit("q", id="token")
        token = old.claim(task_id="token").token
        assert token > held.token
    put_back(made.backup)
    assert connect(clock).claim("q").token > token


DAMAGE = {
    "its rows": lambda whole: whole[:4096] + os.urandom(len(whole) - 4096),
    "its head": lambda whole: b"garbage garbage!" + whole[16:],
    "its first page": lambda whole: whole[:108] + os.urandom(4096 - 108) + whole[4096:],
    "all but a few bytes": lambda whole: whole[:100],
    "everything": lambda whole: b"",
}


@pytest.mark.parametrize("damaged", DAMAGE)
def test_a_damaged_file_is_replaced_and_kept(db, connect, clock, tmp_path, backed_up, put_back, damaged):
    _, made = backed_up
    db.close()
    path = tmp_path / "relet.db"
    left = DAMAGE[damaged](path.read_bytes())
    path.write_bytes(left)
    done = put_back(made.backup)
    assert Path(done.replaced).read_bytes() == left
    assert connect(clock).verify().ok


@pytest.mark.parametrize("left", [b"words" * 200, b"word"])
def test_a_file_that_never_was_a_store_is_left_as_it_is(db, tmp_path, backed_up, left):
    _, made = backed_up
    path = tmp_path / "notes.txt"
    path.write_bytes(left)
    for _ in range(2):  # a refusal makes nothing that would let the next one through
        with pytest.raises(Invalid, match="move the file away first"):
            restore(f"sqlite:///{path}", made.backup, state=tmp_path / "state")
    assert path.read_bytes() == left
    assert [name for name in names(tmp_path) if name.startswith("notes")] == ["notes.txt"]


def test_a_database_of_another_program_is_left_as_it_is_even_where_a_store_was(db, tmp_path, backed_up, put_back):
    _, made = backed_up
    db.close()
    path = tmp_path / "relet.db"
    path.write_bytes(b"")
    ask(tmp_path, "CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(Invalid, match="another program"):
        put_back(made.backup)
    assert path.read_bytes() == before


def test_a_log_that_outlived_its_file_is_kept_and_not_played_into_the_backup(db, connect, clock, tmp_path, put_back):
    db.submit("q", id="in-the-backup")
    made = db.backup(tmp_path / "backup.db")
    db.submit("q", id="since")
    log = (tmp_path / "relet.db-wal").read_bytes()
    db.close()
    (tmp_path / "relet.db").rename(tmp_path / "away.db")
    (tmp_path / "relet.db-wal").write_bytes(log)
    done = put_back(made.backup)
    assert done.replaced.endswith("-wal")
    assert Path(done.replaced).read_bytes() == log
    assert [task.id for task in connect(clock).tasks()] == ["in-the-backup"]


@pytest.mark.parametrize("gone", ["replaced", "removed"])
def test_a_file_that_is_replaced_under_an_open_client_is_noticed(db, tmp_path, gone):
    db.submit("q", id="t")
    made = db.backup(tmp_path / "backup.db")
    lease = db.claim("q")
    os.replace(made.backup, db.place) if gone == "replaced" else os.unlink(db.place)
    for verb in (
        lease.renew,
        lambda: lease.save(1),
        lambda: db.submit("q"),
        lambda: db.claim("q"),
        lambda: db.task("t"),
    ):
        with pytest.raises(Unavailable, match="was replaced or removed") as refused:
            verb()
        assert refused.value.code == "RELET-REPLACED"


def test_the_marks_beside_the_store_know_the_new_epoch(db, tmp_path, backed_up, put_back):
    _, made = backed_up
    db.close()
    done = put_back(made.backup)
    ((store_id,),) = ask(tmp_path, "SELECT store_id FROM meta")
    assert SideFile(tmp_path / "state", store_id).read() == (done.epoch, 0)


def test_a_place_of_bytes_that_cannot_be_asked_leaves_the_store_as_it_was(db, tmp_path, put_back):
    db.submit("q", id="t")
    db.claim("q").attach("page", b"bytes")
    made = db.backup(tmp_path / "backup.db")
    db.submit("q", id="since")
    db.close()

    def exists(uri):
        raise Unavailable("the bucket does not answer")

    with pytest.raises(Unavailable, match="does not answer"):
        put_back(made.backup, exists=exists)
    assert ask(tmp_path, "SELECT count(*) FROM tasks") == [(2,)]
    assert not [name for name in names(tmp_path) if "replaced" in name or "restoring" in name]
    assert put_back(made.backup, exists=lambda uri: False).missing == [
        f"artifact:{hashlib.sha256(b'bytes').hexdigest()}"
    ]
