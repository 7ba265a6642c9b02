"""The place of a store as it is found: each fact made true on a disk of its own, and nothing changed by looking."""

import os
import sqlite3
from contextlib import closing

import apsw
import pytest

from relet.core.doctor.examine import examine
from relet.core.doctor.facts import Facts, PlaceFacts
from relet.store.migrate import SCHEMA
from relet.store.sqlite import examine as looking
from relet.store.sqlite.examine import look_at
from relet.testing import Clock
from tests.store.inside import path_of


@pytest.fixture
def look(tmp_path, clock):
    """The facts about the test's store, by the test's clock."""

    def call(**options):
        options = {"clock": clock, "state": tmp_path / "state", **options}
        return look_at(f"sqlite:///{path_of(tmp_path)}", **options)

    return call


def found(facts: PlaceFacts):
    """The checks that find something, but for the file system, which is memory where tests run fast."""
    return {one.check for one in examine("here", Facts(place=facts)).findings} - {"file-system"}


def test_a_store_in_use_is_well(db, look, tmp_path):
    db.submit("q", 1)
    facts = look()
    assert found(facts) == set()
    assert (facts.file.schema, facts.file.journal_mode, facts.file.synchronous) == (SCHEMA, "wal", 2)
    assert (facts.state.has_mark, facts.state.folder) == (True, str(tmp_path / "state"))
    assert facts.clock.store_boot_id == facts.clock.boot_id == "steered"
    assert facts.file.free_bytes > 0
    assert facts.engine == apsw.sqlite_lib_version()


def test_looking_makes_nothing(look, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    facts = look()
    assert found(facts) == {"file"}
    assert (facts.file.exists, facts.file.schema, facts.state.exists) == (False, None, False)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_file_is_opened_to_be_read_alone(db, look, tmp_path):
    """Somebody may be about to replace it."""
    opened = []
    apsw.connection_hooks.append(lambda one: opened.append((one.filename, one.readonly("main"))))
    try:
        look()
    finally:
        apsw.connection_hooks.pop()
    assert {readonly for name, readonly in opened if name} == {True}, opened


def test_a_store_in_memory_has_no_file(clock):
    facts = look_at("sqlite://", clock=clock)
    assert (facts.file, facts.state) == (None, None)
    assert found(facts) == set()


@pytest.mark.parametrize("content", [b"", b"not a database " * 100], ids=["empty", "other"])
def test_a_file_that_is_no_store_is_left_to_whoever_opens_it(look, tmp_path, content):
    path_of(tmp_path).write_bytes(content)
    path_of(tmp_path).chmod(0o600)
    facts = look()
    assert (facts.file.exists, facts.file.schema, facts.file.synchronous) == (True, None, None)
    assert found(facts) == set()


def test_a_database_of_another_program_tells_its_mode_and_nothing_else(look, tmp_path):
    with closing(apsw.Connection(str(path_of(tmp_path)))) as connection:
        connection.execute("CREATE TABLE t (x)")
    facts = look()
    assert (facts.file.journal_mode, facts.file.schema, facts.file.synchronous) == ("delete", None, None)


def test_a_file_that_was_taken_out_of_wal_mode_is_found_and_left_so(connect, clock, look, tmp_path):
    connect(clock).close()
    with closing(apsw.Connection(str(path_of(tmp_path)))) as connection:
        connection.pragma("journal_mode", "delete")
    assert found(look()) == {"journal-mode"}
    assert look().file.journal_mode == "delete"


def test_rights_of_others_are_found_on_each_file(db, look, tmp_path):
    path_of(tmp_path).chmod(0o640)
    wal = path_of(tmp_path).with_name("relet.db-wal")
    wal.chmod(0o602)
    assert look().file.open_to_others == [str(path_of(tmp_path)), str(wal)]
    assert found(look()) == {"rights"}


def test_a_log_that_a_reader_keeps_from_being_emptied_is_found(db, look, tmp_path, monkeypatch):
    monkeypatch.setattr("relet.core.limits.DOCTOR_WAL_BYTES", 6 << 20)
    db.submit("q", 1)
    with closing(apsw.Connection(str(path_of(tmp_path)))) as reader:
        reader.execute("BEGIN; SELECT count(*) FROM tasks").fetchall()
        for _ in range(8):
            db.submit("q", "x" * 200_000)
        assert found(look()) == set()
        while path_of(tmp_path).with_name("relet.db-wal").stat().st_size <= 6 << 20:
            db.submit("q", "x" * 200_000)
        (finding,) = [one for one in examine("", Facts(place=look())).findings if one.check == "wal-size"]
    assert f"{os.getpid()} (" in finding.evidence, "it names who has the file open"


def test_two_copies_of_sqlite_in_one_process_are_found(db, look, tmp_path):
    db.submit("q", 1)
    (own,) = [one for one in look().processes if one.pid == os.getpid()]
    assert own.engines == 1
    with closing(sqlite3.connect(path_of(tmp_path))) as second:
        second.execute("SELECT count(*) FROM tasks").fetchall()
        assert found(look()) == {"one-engine"}


def test_processes_are_not_told_where_the_platform_does_not(db, look, tmp_path):
    assert look(proc=tmp_path / "nowhere").processes is None


def test_a_process_that_ends_while_it_is_looked_at_is_passed_over(db, look, tmp_path):
    proc = tmp_path / "proc"
    for name in ("self", "7", "8", "sys"):
        (proc / name).mkdir(parents=True)
    line = f"7f00-7f01 rw-s 00000000 fe:00 1 {os.path.realpath(path_of(tmp_path))}-shm\n"
    for name in ("self", "7"):
        (proc / name / "maps").write_text(line)
    (proc / "7" / "cmdline").write_bytes(b"python\0app.py\0")
    assert [(one.pid, one.command) for one in look(proc=proc).processes] == [(7, "python app.py")]


def test_a_state_folder_that_is_gone_or_cannot_be_written_is_found(db, look, tmp_path):
    db.submit("q", 1)
    (tmp_path / "file").touch()
    assert found(look(state=tmp_path / "nowhere")) == {"state-folder"}
    assert found(look(state=tmp_path / "file")) == {"state-folder"}
    (tmp_path / "empty").mkdir()
    assert found(look(state=tmp_path / "empty")) == {"state-folder"}


def test_a_mark_that_cannot_be_read_counts_as_none(db, look, tmp_path):
    for mark in (tmp_path / "state").iterdir():
        mark.write_text("?")
    assert not look().state.has_mark


def test_a_store_from_another_machine_is_found_and_another_boot_of_this_one_is_not(db, look):
    assert found(look(clock=Clock(boot="next"))) == set()
    moved = Clock(boot="next")
    moved.boot = moved.boot._replace(machine_id="other")
    assert found(look(clock=moved)) == {"clock"}


def test_a_platform_without_a_boot_id_goes_by_the_wall_clock(db, look):
    clock = Clock()
    clock.boot = clock.boot._replace(boot_id="")
    assert look(clock=clock).clock.source == "wall"
    assert "clock" in found(look(clock=clock))


def test_an_engine_with_a_known_fault_is_found(db, look, monkeypatch):
    monkeypatch.setattr("apsw.sqlite_lib_version", lambda: "3.45.1")
    assert found(look()) == {"engine"}


def test_a_shared_drive_and_a_disk_in_memory_are_told(db, look, monkeypatch):
    for kind in ("nfs4", "tmpfs", "ext4"):
        monkeypatch.setattr(looking, "kind_of", lambda _, kind=kind: kind)
        assert look().file.file_system == kind
