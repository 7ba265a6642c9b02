"""Whoever has a store open is named to the operator who wants it for himself."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from relet.core.errors import Conflict
from relet.store.sqlite.alone import alone
from relet.store.sqlite.openers import named, who_holds, who_writes
from tests.store.inside import path_of


@contextmanager
def holding(path):
    """Another process that has a store open, as every client of whatever release."""
    program = "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_SH); print('held'); input()"
    holder = subprocess.Popen(
        [sys.executable, "-uc", program, f"{path}-open"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout.readline() == b"held\n"
        try:
            yield holder
        finally:
            holder.communicate(b"\n")


@pytest.mark.parametrize("verb", ["restore", "migrate", "adopt"])
def test_the_process_that_has_the_store_open_is_named_and_nobody_else(db, tmp_path, verb):
    db.close()
    with holding(path_of(tmp_path)) as holder:
        with pytest.raises(
            Conflict, match=rf"is open in process {holder.pid} \(.*python.*; nothing .* relet {verb}"
        ) as no:
            alone(path_of(tmp_path), verb).__enter__()
        assert (no.value.code, no.value.detail["pids"]) == ("RELET-IN-USE", [holder.pid])
    with alone(path_of(tmp_path), verb):
        pass


def test_many_are_named_in_part_and_nobody_where_the_platform_does_not_tell(tmp_path):
    assert named([]) == "another process"
    assert named([(n, "python") for n in range(1, 8)]).endswith("process 5 (python) and 2 more")
    assert who_holds(tmp_path / "file", 3, proc=tmp_path / "nowhere") == []


def test_a_process_that_ends_while_it_is_looked_at_is_passed_over(tmp_path):
    held, proc = tmp_path / "held", tmp_path / "proc"
    held.touch()
    for name in ("7", "8", "9"):
        (proc / name / "fd").mkdir(parents=True)
        (proc / name / "fd" / "3").symlink_to(held)
    (proc / "7" / "cmdline").write_bytes(b"python\0app.py\0")
    (proc / "9" / "fd" / "3").unlink()
    assert who_holds(held, 3, proc=proc) == [(7, "python app.py")]


def test_whoever_writes_is_told_by_the_locks_and_nobody_where_the_platform_does_not_tell(tmp_path):
    store, proc = tmp_path / "a.db", tmp_path / "proc"
    index = tmp_path / "a.db-shm"
    index.touch()
    for pid in ("7", "8", "9"):
        (proc / pid).mkdir(parents=True)
        (proc / pid / "cmdline").write_bytes(b"app\0")
    inode = index.stat().st_ino
    (proc / "locks").write_text(
        f"1: POSIX  ADVISORY  READ 8 fe:00:{inode} 123 123\n"
        f"2: POSIX  ADVISORY  WRITE 7 fe:00:{inode} 120 120\n"
        f"2: -> POSIX  ADVISORY  WRITE 9 fe:00:{inode} 120 120\n"
        f"3: POSIX  ADVISORY  WRITE 8 fe:00:{inode + 1} 120 120\n"
        f"4: FLOCK  ADVISORY  WRITE 8 fe:00:{inode} 0 EOF\n"
        f"5: POSIX  ADVISORY  WRITE 8 fe:00:{inode} 121 121\n"
        f"6: POSIX  ADVISORY  READ 8 fe:00:{inode} 120 120\n"
        f"7: POSIX  ADVISORY  WRITE 10 fe:00:{inode} 120 120\n"
    )
    assert who_writes(store, proc) == [(7, "app")], "the other one has ended"
    assert who_writes(tmp_path / "none.db", proc) == who_writes(store, tmp_path / "nowhere") == []
