"""Files of somebody else are left byte for byte as they are; files that cannot be used are refused in words."""

import os
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

import relet
from relet.core.errors import Invalid, Unavailable
from tests.store.inside import is_locked

NOBODY = 65_534


@contextmanager
def ordinary_user():
    """Rights of files mean nothing to root: as root, another user for a while."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public(monkeypatch):
    """A folder that other users may come to, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="relet-") as folder, tempfile.TemporaryDirectory() as state:
        os.chmod(folder, 0o777)
        os.chmod(state, 0o777)
        monkeypatch.setenv("RELET_STATE_DIR", state)
        yield Path(folder)


def connect(path):
    return relet.connect(f"sqlite:///{path}")


def database(path, *statements):
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def text(path):
    path.write_text("dear diary\n" * 100)


def short_text(path):
    path.write_text("x")


def zeros(path):
    path.write_bytes(bytes(8_192))


def tables(path):
    database(path, "CREATE TABLE notes (x)")


def marked(path):
    database(path, "PRAGMA application_id = 7", "CREATE TABLE notes (x)")


def in_wal_mode(path):
    database(path, "PRAGMA journal_mode = wal", "CREATE TABLE notes (x)")


FOREIGN = [
    (text, "is not a SQLite database"),
    (short_text, "is not a SQLite database"),
    (zeros, "is not a SQLite database"),
    (tables, "holds the tables of another program"),
    (marked, r"belongs to another program \(application id 0x7\)"),
    (in_wal_mode, "holds the tables of another program"),
]


@pytest.mark.parametrize(("make", "problem"), FOREIGN)
def test_a_file_of_another_program_is_refused_and_stays_byte_for_byte(tmp_path, make, problem):
    path = tmp_path / "theirs.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(Invalid, match=f"{problem}; it was left as it is. Name a new file") as refused:
        connect(path)
    assert (refused.value.code, refused.value.detail["path"]) == ("RELET-NOT-A-STORE", str(path))
    assert path.read_bytes() == before
    assert not path.with_name("theirs.db-open").exists()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (os.mkfifo, "is not a file"),
        (lambda path: path.symlink_to(path.with_name("nowhere")), "odd is a link to .*nowhere, which is not there"),
    ],
)
def test_what_is_no_file_is_refused(tmp_path, make, problem):
    make(tmp_path / "odd")
    with pytest.raises(Invalid, match=problem):
        connect(tmp_path / "odd")
    assert [one.name for one in tmp_path.iterdir()] == ["odd"]


def test_a_store_behind_a_link_is_the_store(tmp_path):
    connect(tmp_path / "real.db").close()
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    with connect(tmp_path / "link.db") as db:
        assert db.tasks() == []


def test_a_damaged_store_is_refused_in_words(tmp_path):
    path = tmp_path / "relet.db"
    with connect(path) as db:
        db.submit("q", "x" * 50_000)
    data = bytearray(path.read_bytes())
    data[4_096:12_288] = os.urandom(8_192)
    path.write_bytes(data)
    with pytest.raises(Unavailable, match="is damaged") as damaged:
        connect(path).tasks()
    assert damaged.value.code == "RELET-DAMAGED"


def test_a_folder_that_this_user_may_not_write_is_unavailable(public):
    public.chmod(0o555)
    with ordinary_user(), pytest.raises(Unavailable, match="cannot be made: Permission denied"):
        connect(public / "relet.db")
    public.chmod(0o777)
    assert list(public.iterdir()) == []


def test_a_file_that_this_user_may_not_read_is_unavailable(public):
    path = public / "relet.db"
    with ordinary_user():
        connect(path).close()
        path.chmod(0o000)
        with pytest.raises(Unavailable, match=r"cannot be opened: .* mend its rights") as refused:
            connect(path)
    assert refused.value.code == "RELET-CANNOT-OPEN"


def test_a_file_that_this_user_may_only_read_is_read_and_not_written(public):
    path = public / "relet.db"
    with ordinary_user():
        with connect(path) as db:
            db.submit("q", 1, id="t")
        path.chmod(0o400)
        with connect(path) as db:
            assert [task.id for task in db.tasks()] == ["t"]
            for verb in (lambda: db.submit("q", 2), lambda: db.claim("q")):
                with pytest.raises(
                    Unavailable, match="cannot be written by this user; nothing was written"
                ) as refused:
                    verb()
                assert refused.value.code == "RELET-READ-ONLY"
            assert [task.state for task in db.tasks()] == ["ready"]


def test_a_store_whose_folder_may_not_be_written_any_more_is_unavailable(public):
    path = public / "relet.db"
    with ordinary_user():
        connect(path).close()
    public.chmod(0o555)
    with ordinary_user(), pytest.raises(Unavailable, match="or its folder, cannot be written") as refused:
        connect(path)
    public.chmod(0o777)
    assert refused.value.code == "RELET-READ-ONLY"


def test_opening_a_store_twice_in_a_process_keeps_the_locks_of_the_first(tmp_path):
    path = tmp_path / "relet.db"
    with connect(path) as first:
        first.submit("q", 1)
        assert is_locked(path)
        with connect(path):
            assert is_locked(path), "closing any descriptor of the file would have dropped it"
        assert is_locked(path)
    assert not is_locked(path)
