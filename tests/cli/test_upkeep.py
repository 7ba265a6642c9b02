"""`relet verify`, `backup`, `restore`, `migrate`, `prune`: what they say, and how they end."""

import json
import os
import shutil
import subprocess

import apsw
import pytest

from relet.store.migrate import SCHEMA


@pytest.fixture
def used(relet, folder):
    """A store with one task done, one held and one ready; nobody has it open."""
    for name in ("done", "held", "ready"):
        relet("submit", "q", "--id", name)
    relet("claim", "q", "--handle-file", "h")
    relet("complete", '"ok"', "--handle-file", "h")
    relet("claim", "q", "--handle-file", "h")
    return folder


def change(folder, statement):
    connection = apsw.Connection(str(folder / "relet.db"))
    connection.execute(statement)
    connection.close()


def test_a_whole_store_is_said_to_be_whole(relet, used):
    done = relet("verify")
    assert (done.code, done.out) == (0, "")
    assert "3 tasks, 2 leases, 6 events, 0 stored bytes: all holds" in done.err
    told = relet("verify", "--json").json
    assert (told["tasks"], told["findings"], told["more"]) == (3, [], False)


def test_a_finding_names_its_row_and_the_exit_code_is_8(relet, used):
    change(used, "UPDATE tasks SET attempt = 7 WHERE id = 'ready'")
    done = relet("verify")
    assert done.code == 8
    assert done.out == "attempts: task ready: its attempt is 7, after 0 failures and 0 losses\n"
    assert "1 finding\n" in done.err
    (finding,) = relet("verify", "--json").json["findings"]
    assert (finding["rule"], finding["row"]) == ("attempts", "task ready")


def test_bytes_that_are_gone_are_looked_for_unless_told_not_to(relet, used):
    (used / "page").write_bytes(b"bytes")
    relet("attach", "page", "page", "--handle-file", "h")
    assert relet("verify").code == 0
    for path in (used / "relet.db-artifacts" / "sha256").glob("*/*"):
        path.unlink()
    assert relet("verify").code == 8
    assert relet("verify", "--no-bytes").code == 0


def test_a_store_in_use_can_be_verified_and_backed_up(relet, db, used):
    db.submit("q", id="more")
    assert relet("verify").code == 0
    assert relet("backup", "copy.db").code == 0
    assert relet("verify", "--url", "sqlite:///copy.db").code == 0


def test_nothing_is_made_where_there_is_no_store(relet, folder):
    for command in (["verify"], ["backup", "copy.db"], ["migrate"]):
        assert relet(*command).code == 10
    assert list(folder.iterdir()) == []


def test_back_and_forth(relet, used):
    made = relet("backup", "copy.db")
    assert (made.code, made.out) == (0, f"{used}/copy.db\n")
    assert "3 tasks" in made.err
    assert relet("backup", "copy.db").code == 11
    relet("submit", "q", "--id", "since")
    relet("claim", "--task", "since", "--handle-file", "newer")
    done = relet("restore", "copy.db")
    assert done.code == 0
    assert "kept as" in done.out
    assert "1 were open, and have lapsed" in done.out
    assert relet("show", "since").code == 10
    assert relet("renew", "--handle-file", "h").code == 5
    for verb in (["renew"], ["save", "1"], ["complete", "1"], ["fail", "no"]):
        done = relet(*verb, "--handle-file", "newer")
        assert (done.code, "RELET-RESTORED" in done.err) == (5, True), done.err
    assert relet("verify").code == 0
    told = json.loads(relet("restore", "copy.db", "--json").out)
    assert told["tokens_above"] == told["epoch"] << 32


def test_a_restore_is_refused_while_the_store_is_open(relet, db, used):
    relet("backup", "copy.db")
    done = relet("restore", "copy.db", "--json")
    assert (done.code, done.error["code"]) == (11, "RELET-IN-USE")
    assert f"process {os.getpid()} (" in done.error["message"]


@pytest.fixture
def with_bytes(relet, used):
    """The store has an artifact."""
    (used / "page").write_bytes(b"bytes")
    assert relet("attach", "page", "page", "--handle-file", "h").code == 0
    return used


def test_bytes_are_copied_beside_a_backup_and_found_there(relet, with_bytes):
    said = relet("backup", "copy.db").err
    assert f"1 artifacts are not in it: copy {with_bytes}/relet.db-artifacts too" in said
    how = next(line for line in said.splitlines() if "cp -a" in line).partition(" → ")[2]
    done = relet("verify", "--url", "sqlite:///copy.db")
    assert done.code == 8
    assert f"were looked for in {with_bytes}/copy.db-artifacts" in done.err
    assert "relet verify --artifacts PLACE" in done.err
    there = relet("verify", "--url", "sqlite:///copy.db", "--artifacts", "relet.db-artifacts", "--json")
    assert (there.code, there.json["artifacts_at"]) == (0, f"{with_bytes}/relet.db-artifacts")
    subprocess.run(how, shell=True, check=True)
    assert relet("verify", "--url", "sqlite:///copy.db").code == 0


def test_a_restore_says_which_bytes_are_not_there_and_how_to_bring_them(relet, with_bytes):
    relet("backup", "copy.db")
    new = ("--url", f"sqlite:///{with_bytes}/new.db")
    done = relet("restore", "copy.db", *new)
    assert done.code == 0
    assert f"1 of 1 are not in {with_bytes}/new.db-artifacts: copy there what was kept" in done.out
    uri = done.err.split()[1]
    assert uri.startswith("artifact:")
    shutil.copytree("relet.db-artifacts", "copy.db-artifacts")
    told = relet("restore", "copy.db", *new, "--json").json
    assert (told["artifacts"], told["missing"], told["more"]) == (1, [uri], False)
    how = next(line for line in relet("restore", "copy.db", *new).out.splitlines() if "cp -a" in line)
    subprocess.run(how.partition(" → ")[2], shell=True, check=True)
    assert "1 are named, and are there" in relet("restore", "copy.db", *new).out
    assert relet("verify", *new).code == 0
    assert "bytes" not in relet("restore", "copy.db", *new, "--no-bytes").out


def test_a_store_that_is_up_to_date_needs_nothing(relet, used):
    assert relet("migrate").out == f"schema {SCHEMA}, nothing to do\n"
    assert relet("migrate", "--dry-run", "--json").json["steps"] == []


def test_what_is_old_leaves(relet, used):
    change(used, "UPDATE tasks SET updated_wall_ms = 0 WHERE id = 'done'")
    assert relet("prune").out == ""
    shown = relet("prune", "--older", "1d", "--dry-run")
    assert (shown.out, shown.code) == ("done\n", 0)
    assert "nothing was changed" in shown.err
    assert relet("prune", "--queue", "q", "--retention", "30d").out == "set\n"
    assert relet("prune", "--queue", "q", "--retention", "none", "--json").json == {
        "queue": "q",
        "retention_ms": None,
    }
    assert relet("prune").out == "", "it is kept for ever again"
    assert relet("prune", "--queue", "q", "--retention", "30d").out == "set\n"
    assert relet("prune", "--json").json == {"ids": ["done"], "count": 1, "dry_run": False}
    assert relet("submit", "q", "--id", "done").code == 11
    assert relet("prune", "--retention", "30d").code == 2
