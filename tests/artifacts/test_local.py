"""A folder: rights, links, full disks, and the order in which things reach the disk."""

import errno
import os
import stat
import threading
from array import array

import pytest

from relet.artifacts.opening import open_artifacts
from relet.artifacts.turn import turn
from relet.core.errors import NotFound, Unavailable
from tests.artifacts.places import drafts, path_of, uri


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_what_is_stored_is_for_its_owner_alone_whatever_the_umask(local, open_umask):
    local.put(b"secret")
    for folder, names, files in os.walk(local.folder):
        assert all(stat.S_IMODE(os.lstat(os.path.join(folder, name)).st_mode) == 0o700 for name in names)
        assert all(stat.S_IMODE(os.lstat(os.path.join(folder, name)).st_mode) == 0o600 for name in files)
    assert stat.S_IMODE(os.lstat(local.folder).st_mode) == 0o700
    assert os.path.isfile(path_of(local, b"secret"))


def test_looking_makes_nothing(local):
    assert not local.exists(uri(b"this"))
    assert list(local.list(0)) == []
    assert local.tidy(local.now()) == (0, 0)
    assert not os.path.exists(local.folder)


def test_a_put_leaves_no_draft(local):
    local.put(b"this")
    assert drafts(local) == []


@pytest.fixture
def calls(monkeypatch):
    """What reached the disk, in order: files that were synced, folders that were, names that were given."""
    seen = []
    names = {}
    real = {name: getattr(os, name) for name in ("open", "fsync", "replace", "mkdir")}

    def opened(path, *arguments, **named):
        descriptor = real["open"](path, *arguments, **named)
        names[descriptor] = os.path.abspath(path)
        return descriptor

    def synced(descriptor):
        seen.append(("sync", names[descriptor]))
        real["fsync"](descriptor)

    def made(path, *arguments):
        real["mkdir"](path, *arguments)
        seen.append(("make", path))

    def replaced(source, target):
        seen.append(("rename", source, target))
        real["replace"](source, target)

    monkeypatch.setattr(os, "mkdir", made)
    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    return seen


def test_the_bytes_are_on_disk_before_they_have_a_name_and_the_name_before_the_put_returns(local, calls):
    local.put(b"this")
    target = path_of(local, b"this")
    (rename,) = [call for call in calls if call[0] == "rename"]
    at = calls.index(rename)
    assert rename[2] == target
    assert ("sync", rename[1]) in calls[:at]
    assert ("sync", os.path.dirname(target)) in calls[at:]
    made = [n for n, call in enumerate(calls) if call[0] == "make"]
    assert len(made) == 4
    for n in made:  # else the folder could be gone after a power cut
        assert ("sync", os.path.dirname(calls[n][1])) in calls[n:]


def test_folders_that_another_process_made_are_synced_as_well(local, clock, calls):
    for name in ("", "drafts", "sha256", os.path.relpath(os.path.dirname(path_of(local, b"this")), local.folder)):
        os.mkdir(os.path.join(local.folder, name))
    local.put(b"this")
    synced = {call[1] for call in calls if call[0] == "sync"}
    shard = os.path.dirname(path_of(local, b"this"))
    assert {os.path.dirname(local.folder), local.folder, os.path.dirname(shard), shard} <= synced


FAILURES = {
    "full": (errno.ENOSPC, "RELET-FULL", "Free some space"),
    "over quota": (errno.EDQUOT, "RELET-FULL", "Free some space"),
    "too large for it": (errno.EFBIG, "RELET-FULL", "Free some space"),
    "broken": (errno.EIO, "RELET-IO", "the disk failed"),
    "read-only": (errno.EROFS, "RELET-ARTIFACT-PLACE", "rights"),
    "forbidden": (errno.EACCES, "RELET-ARTIFACT-PLACE", "rights"),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("call", ["write", "fsync", "replace", "utime", "mkdir"])
def test_a_disk_that_fails_leaves_nothing_and_is_said_to(local, monkeypatch, failure, call):
    number, code, told = FAILURES[failure]

    def fails(*_arguments, **_named):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(os, call, fails)
        with pytest.raises(Unavailable, match=told) as failed:
            local.put(b"this")
    assert failed.value.code == code
    assert failed.value.detail["place"] == local.folder
    assert drafts(local) == []
    assert list(local.list(0)) == []
    assert local.read(local.put(b"this").uri) == b"this"


def test_an_interrupt_leaves_nothing(local, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("relet.artifacts.local.sync_file", interrupted)
        with pytest.raises(KeyboardInterrupt):
            local.put(b"this")
    assert drafts(local) == []
    assert list(local.list(0)) == []


def test_a_write_that_is_cut_short_is_gone_on_with(local, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, view: real(descriptor, view[:3]))
    assert local.read(local.put(b"0123456789").uri) == b"0123456789"


def test_bytes_that_change_while_they_are_stored_are_stored_as_they_were(local, monkeypatch):
    data, real = bytearray(b"this"), os.write

    def changing(descriptor, view):
        data[:] = b"that"
        return real(descriptor, view)

    monkeypatch.setattr(os, "write", changing)
    assert local.read(local.put(data).uri) == b"this"


def test_a_view_is_as_many_bytes_as_it_has_and_not_as_many_items(local):
    assert local.put(memoryview(array("q", range(5)))).size == 40


def test_a_link_in_the_way_is_refused(local, tmp_path):
    local.put(b"this")
    path = path_of(local, b"this")
    other = tmp_path / "other"
    for part in (path, os.path.dirname(path), os.path.dirname(os.path.dirname(path)), local.folder):
        os.rename(part, other)
        os.symlink(other, part)
        with pytest.raises(Unavailable, match="symbolic link"):
            local.read(uri(b"this"))
        if part != path:
            with pytest.raises(Unavailable, match="symbolic link"):
                local.put(b"this")
        os.unlink(part)
        os.rename(other, part)
    assert local.read(uri(b"this")) == b"this"


def test_a_put_replaces_a_link_and_leaves_alone_what_it_points_to(local, tmp_path):
    local.put(b"this")
    path = path_of(local, b"this")
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    os.unlink(path)
    os.symlink(other, path)
    local.delete(uri(b"this"))
    assert other.read_bytes() == b"theirs"
    local.put(b"this")
    assert (other.read_bytes(), local.read(uri(b"this"))) == (b"theirs", b"this")
    assert not os.path.islink(path)


def test_a_file_or_folder_in_the_way_is_refused(local):
    local.put(b"this")
    os.unlink(path_of(local, b"this"))
    os.mkdir(path_of(local, b"this"))
    with pytest.raises(Unavailable, match="is not a file"):
        local.read(uri(b"this"))
    with pytest.raises(Unavailable):
        local.put(b"this")
    os.rmdir(path_of(local, b"this"))
    os.rmdir(os.path.dirname(path_of(local, b"this")))
    with open(os.path.dirname(path_of(local, b"this")), "w"):
        pass
    with pytest.raises(Unavailable, match="is not a folder"):
        local.put(b"this")


def test_a_folder_into_which_everybody_may_write_is_refused(local):
    local.put(b"this")
    os.chmod(local.folder, 0o777)
    for look in (lambda: local.put(b"that"), lambda: local.read(uri(b"this"))):
        with pytest.raises(Unavailable, match="chmod o-w"):
            look()
    os.chmod(local.folder, 0o750)
    assert local.read(uri(b"this")) == b"this"


def test_a_folder_whose_parent_is_not_there_is_not_made_up(tmp_path):
    with pytest.raises(Unavailable, match=f"mkdir -p {tmp_path}/no"):
        open_artifacts(tmp_path / "no" / "artifacts").put(b"this")


def test_names_that_are_none_of_ours_are_left_alone(local, clock):
    local.put(b"this")
    objects = os.path.join(local.folder, "sha256")
    os.mkdir(os.path.join(objects, "AB"))
    for name in ("README", os.path.join("AB", "0" * 62), os.path.join(os.path.dirname(path_of(local, b"this")), "x")):
        with open(os.path.join(objects, name), "w"):
            pass
    assert [one.uri for one in local.list(0)] == [uri(b"this")]


def test_a_collection_that_has_the_lock_is_waited_for(local):
    local.put(b"this")
    done = threading.Event()

    def put():
        local.put(b"that")
        done.set()

    with turn(local.folder, alone=True):
        thread = threading.Thread(target=put)
        thread.start()
        assert not done.wait(0.05)
    thread.join(10)
    assert done.is_set()
    assert local.exists(uri(b"that"))


def test_a_lock_that_is_never_let_go_is_an_error_after_a_while(local, monkeypatch):
    monkeypatch.setattr("relet.artifacts.turn.ARTIFACT_LOCK_MS_MAX", 20)
    local.put(b"this")
    with turn(local.folder, alone=True), pytest.raises(Unavailable, match="held lock") as busy:
        local.put(b"that")
    assert busy.value.code == "RELET-BUSY"
    assert drafts(local) == []
    with pytest.raises(NotFound):
        local.read(uri(b"that"))
    with turn(local.folder, alone=False):
        local.put(b"that")
