"""A fence for files: old or new and nothing between, under a lock that its process cannot leave behind."""

import contextlib
import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import relet
from relet.fences import FileFence, files


@pytest.fixture
def fence(tmp_path):
    return FileFence(tmp_path, patience=0)


@contextlib.contextmanager
def locked(folder, resource):
    """As another process would, in the middle of its rename: each opening of the file has a lock of its own."""
    with (folder / files.INNER / f"{resource}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def left_over(folder):
    return [path.name for path in (folder / files.INNER).iterdir() if path.suffix not in (".lock", ".token")]


def test_readers_see_the_old_version_or_the_new_one(fence, tmp_path):
    with fence.write("report.txt", 1) as file:
        file.write(b"one")
        assert not (tmp_path / "report.txt").exists()
    with fence.write("report.txt", 1) as file:
        file.write(b"two")
        file.flush()
        assert (tmp_path / "report.txt").read_bytes() == b"one"
    assert (tmp_path / "report.txt").read_bytes() == b"two"
    assert left_over(tmp_path) == []


def test_the_block_may_read_and_seek_and_hand_its_path_to_another_program(fence, tmp_path):
    with fence.write("report.txt", 1) as file:
        file.write(b"half")
        file.seek(0)
        assert file.read() == b"half"
        other = Path(file.name).with_suffix(".other")
        other.write_bytes(b"by another program")
        os.replace(other, file.name)
    assert (tmp_path / "report.txt").read_bytes() == b"by another program"


def test_a_raise_while_the_block_runs_refuses_its_end(fence, tmp_path):
    (tmp_path / "report.txt").write_text("old")
    with pytest.raises(relet.StaleToken) as refused, fence.write("report.txt", 1) as file:
        file.write(b"late")
        FileFence(tmp_path).raise_to("report.txt", 2)
    assert (refused.value.token, refused.value.current_token) == (1, 2)
    assert (tmp_path / "report.txt").read_text() == "old"
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("interrupt", [ValueError, KeyboardInterrupt])
def test_whatever_ends_the_block_early_leaves_the_old_file(fence, tmp_path, interrupt):
    (tmp_path / "report.txt").write_text("old")
    with pytest.raises(interrupt), fence.write("report.txt", 1) as file:
        file.write(b"half")
        raise interrupt
    assert (tmp_path / "report.txt").read_text() == "old"
    assert left_over(tmp_path) == []


def test_the_mode_of_the_file_stays(fence, tmp_path):
    (tmp_path / "run.sh").touch()
    os.chmod(tmp_path / "run.sh", 0o750)
    with fence.write("run.sh", 1) as file:
        file.write(b"true")
    assert stat.S_IMODE(os.stat(tmp_path / "run.sh").st_mode) == 0o750


def test_a_lock_held_by_another_is_unavailable_in_time(fence, tmp_path):
    fence.raise_to("report.txt", 1)
    with locked(tmp_path, "report.txt"):
        with pytest.raises(
            relet.Unavailable, match="stayed locked for 0 s by another writer of this file"
        ) as refused:
            fence.raise_to("report.txt", 2)
        fence.raise_to("other.txt", 2)
    assert (refused.value.code, refused.value.retryable) == ("RELET-FENCE-BUSY", True)
    fence.raise_to("report.txt", 2)


def test_at_the_end_of_the_block_a_lock_held_by_another_leaves_nothing(fence, tmp_path):
    with pytest.raises(relet.Unavailable), contextlib.ExitStack() as held, fence.write("report.txt", 1) as file:
        file.write(b"new")
        held.enter_context(locked(tmp_path, "report.txt"))
    assert not (tmp_path / "report.txt").exists()
    assert left_over(tmp_path) == []


def test_threads_wait_for_each_other(tmp_path):
    fence = FileFence(tmp_path)

    def write(token):
        with contextlib.suppress(relet.StaleToken), fence.write("report.txt", token) as file:
            file.write(f"{token}".encode())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(1, 41)))
    assert (tmp_path / "report.txt").read_text() == "40"


@pytest.mark.parametrize("name", ["..", ".", ".hidden", "a/b", "/etc/passwd", "a\\b", "é" * 101, "a/../b"])
def test_a_name_that_leaves_the_folder_hides_or_is_too_long_is_refused(fence, tmp_path, name):
    for verb in (fence.raise_to, fence.read, lambda *ask: fence.publish(*ask, b"")):
        with pytest.raises(relet.Invalid, match="resource: ") as refused:
            verb(name, 1)
        assert refused.value.detail["field"] == "resource"
    with pytest.raises(relet.Invalid), fence.write(name, 1):
        pytest.fail("the block began")
    assert list((tmp_path / files.INNER).iterdir()) == []


def test_a_link_in_the_place_of_a_lock_is_not_followed(fence, tmp_path):
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / files.INNER / "report.txt.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(relet.Unavailable, match="FileFence failed"):
        fence.raise_to("report.txt", 1)
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_a_damaged_token_is_told_and_not_taken_for_none(fence, tmp_path):
    fence.raise_to("report.txt", 1)
    (tmp_path / files.INNER / "report.txt.token").write_text("soon")
    with pytest.raises(relet.Unavailable, match="is damaged") as refused:
        fence.raise_to("report.txt", 2)
    assert refused.value.code == "RELET-DAMAGED"


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(relet.Invalid, match=r"folder: .* is no folder; make it first"):
        FileFence(tmp_path / "gone")


def test_a_network_file_system_is_refused_and_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "kind_of", lambda folder: "nfs4")
    with pytest.raises(relet.Unavailable, match="is on a nfs4 file system") as refused:
        FileFence(tmp_path)
    assert refused.value.code == "RELET-NETWORK-FILE"
    assert list(tmp_path.iterdir()) == []


def fail_at(monkeypatch, place):
    """From now on nothing below this place reaches the disk."""
    sync = files.sync_path

    def failing(path):
        if Path(path) == place:
            raise OSError(5, "Input/output error")
        sync(path)

    monkeypatch.setattr(files, "sync_path", failing)


def test_a_raise_that_did_not_reach_the_disk_is_unavailable(fence, tmp_path, monkeypatch):
    fail_at(monkeypatch, tmp_path / files.INNER)
    with pytest.raises(relet.Unavailable, match="Input/output error"):
        fence.raise_to("report.txt", 1)


def test_a_rename_that_perhaps_did_not_reach_the_disk_is_unknown(fence, tmp_path, monkeypatch):
    fail_at(monkeypatch, tmp_path)
    with (
        pytest.raises(relet.OutcomeUnknown, match="was replaced, and the folder") as refused,
        fence.write("report.txt", 1) as file,
    ):
        file.write(b"new")
    assert refused.value.code == "RELET-COMMIT"


def test_what_is_written_is_on_disk_before_it_is_renamed(fence, tmp_path, monkeypatch):
    order = []
    sync, replace = files.sync_path, os.replace
    monkeypatch.setattr(files, "sync_path", lambda path: (order.append(("sync", Path(path).suffix)), sync(path)))
    monkeypatch.setattr(
        os, "replace", lambda old, new: (order.append(("rename", Path(new).suffix)), replace(old, new))
    )
    with fence.write("report.txt", 1) as file:
        file.write(b"new")
    assert order == [
        ("sync", ".new"), ("rename", ".token"), ("sync", ""), ("sync", ".part"), ("rename", ".txt"), ("sync", ""),
    ]  # fmt: skip


class TestPublished:
    def test_each_token_has_a_file_of_its_own_and_readers_name_the_token(self, fence, tmp_path):
        assert fence.publish("result", 1, b"old") == tmp_path / "result.1"
        fence.publish("result", 2, b"new")
        assert (fence.read("result", 1), fence.read("result", 2)) == (b"old", b"new")
        assert left_over(tmp_path) == []

    def test_it_is_published_once_and_repeating_it_is_safe(self, fence, tmp_path):
        fence.publish("result", 1, b"one")
        fence.publish("result", 1, b"one")
        with pytest.raises(relet.Conflict, match="is there with other bytes"):
            fence.publish("result", 1, b"two")
        assert fence.read("result", 1) == b"one"
        assert left_over(tmp_path) == []

    def test_it_waits_for_no_lock_and_asks_no_fence(self, fence, tmp_path):
        fence.raise_to("result", 5)
        with locked(tmp_path, "result"):
            fence.publish("result", 4, b"late, and read by nobody")

    def test_what_was_not_published_is_not_found(self, fence):
        with pytest.raises(relet.NotFound, match="token 7 has published no 'result'"):
            fence.read("result", 7)
