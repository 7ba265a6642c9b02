"""Locks that are waited for, but not for ever; and what is synced when somebody says that it is on disk."""

import errno
import os
import sys

import pytest

from relet.disk import syncing
from relet.disk.locking import lock
from relet.disk.patience import tries
from relet.disk.syncing import sync_file, sync_path


@pytest.mark.parametrize(("patience_ms", "turns"), [(0, 1), (25, 4), (1_000, 101)])
def test_patience_is_one_turn_at_least_and_ends(monkeypatch, patience_ms, turns):
    now = [100.0]
    monkeypatch.setattr("relet.disk.patience.time.monotonic", lambda: now[0])
    monkeypatch.setattr("relet.disk.patience.time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    assert abs(len(list(tries(patience_ms))) - turns) <= 1
    assert len(list(tries(0))) == 1


@pytest.fixture
def opened(tmp_path):
    """Open one file anew, as each process does."""
    descriptors = []

    def opened():
        descriptors.append(os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR))
        return descriptors[-1]

    yield opened
    for descriptor in descriptors:
        os.close(descriptor)


def test_one_is_alone_or_many_share(opened):
    ours, other = opened(), opened()
    assert lock(ours, 0)
    assert not lock(other, 20)
    assert not lock(other, 0, alone=False)
    assert lock(ours, 0, alone=False)
    assert lock(other, 0, alone=False)
    assert not lock(ours, 0)


def test_a_lock_ends_with_its_file(opened, tmp_path):
    with (tmp_path / "lock").open("w") as before:
        assert lock(before.fileno(), 0)
    assert lock(opened(), 0)


def test_a_file_system_without_locks_is_no_lock_that_others_hold(opened, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("relet.disk.locking.fcntl.flock", refused)
    with pytest.raises(OSError, match="No locks"):
        lock(opened(), 1_000)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_sync_goes_past_the_drives_own_memory(tmp_path, monkeypatch, platform):
    done = []
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(os, "fsync", lambda descriptor: done.append("fsync"))
    monkeypatch.setattr(syncing.fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(syncing.fcntl, "fcntl", lambda descriptor, command: done.append(command))
    with (tmp_path / "file").open("w") as file:
        sync_file(file.fileno())
    sync_path(tmp_path / "file")
    sync_path(tmp_path)
    assert done == (["fsync"] if platform == "linux" else [51]) * 3
