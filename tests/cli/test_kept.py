"""What is kept with a task: steps, artifacts, checkpoints, notes; and the removal of bytes that nobody names."""

import base64
import hashlib
import os
import re
import time
from pathlib import Path

import pytest

import relet as library

FILE = ("--handle-file", "t-1.handle")
DAY_S = 86_400
APP = library.App()


@APP.task("read", queue="q")
def read(run, pages):
    def look(page):
        run.spent(0.5)
        return f"page {page}"

    found = [run.step("look", look, page) for page in range(pages)]
    return [*found, run.step("sum up", len, found, key="all")]


@pytest.fixture
def stepped(db):
    read.submit(db, pages=2, id="t-1")
    APP.run_until_idle(db)


def test_steps_are_listed_in_their_order_with_what_they_took(relet, stepped):
    head, *rows = (re.split(r" {2,}", line) for line in relet("steps", "t-1").out.splitlines())
    assert head == ["NAME", "CALL", "TOKEN", "AT", "TOOK", "COST", "BYTES"]
    assert [[row[n] for n in (0, 1, 2, 4, 5, 6)] for row in rows] == [
        ["look", "#1", "1", "0.0s", "0.5", "8"], ["look", "#2", "1", "0.0s", "0.5", "8"],
        ["sum up", "all", "1", "0.0s", "-", "1"],
    ]  # fmt: skip


def test_the_results_of_steps_are_there_when_asked_for(relet, stepped):
    assert relet("steps", "t-1", "--values").out.splitlines()[1].endswith("page 0")
    bare, full = (relet("steps", "t-1", *args, "--json").json["steps"] for args in ([], ["--values"]))
    assert set(bare[0]) == {"name", "key", "n", "token", "at", "took_ms", "cost", "size"}
    assert [step["value"] for step in full] == ["page 0", "page 1", 2]
    assert [(step["key"], step["n"]) for step in full] == [(None, 1), (None, 2), ("all", None)]


def test_show_and_history_tell_what_the_steps_save(relet, stepped):
    assert re.search(r"steps +3 kept, which saves a later holder 0\.0s and a cost of 1\n", relet("show", "t-1").out)
    assert relet("show", "t-1", "--json").json["steps"]["steps"] == 3
    lines = [line for line in relet("history", "t-1").out.splitlines() if " stepped " in line]
    assert [line.rpartition("  ")[0].rpartition("  ")[2] for line in lines] == [
        "look, call 1", "look, call 2", "sum up, key all",
    ]  # fmt: skip
    assert lines[0].endswith("took 0.0s, cost 0.5")


def test_a_grant_says_what_it_need_not_do_again(relet, held, db):
    held()
    with db.lease(Path("t-1.handle").read_text().strip()).run() as run:
        run.step("look", int)
        run.lease.release()
    relet("claim", "q")
    assert relet("history", "t-1").out.splitlines()[-1].endswith("  1 steps kept (0.0s)")


@pytest.mark.parametrize("verb", ["steps", "artifacts"])
def test_a_task_that_has_none_names_the_store_and_one_that_is_not_there_is_10(relet, folder, verb):
    relet("submit", "q", "--id", "t-1")
    done = relet(verb, "t-1")
    assert (done.code, done.out) == (0, "")
    assert f"{folder}/relet.db" in done.err
    assert relet(verb, "nope").code == 10


@pytest.fixture
def attached(relet, held, folder):
    """A task with two artifacts of one name; their bytes are no text."""

    def call():
        held()
        for data in (b"old", b"\x00\xffnew\n"):
            (folder / "page").write_bytes(data)
            done = relet("attach", "page.bin", "page", *FILE)
            assert done.code == 0, done.err
        return done.out.strip()

    return call


def test_a_file_is_kept_and_its_uri_printed(relet, attached, folder):
    uri = attached()
    assert uri == f"artifact:{hashlib.sha256((folder / 'page').read_bytes()).hexdigest()}"
    head, old, new = (re.split(r" {2,}", line) for line in relet("artifacts", "t-1").out.splitlines())
    assert head == ["NAME", "BYTES", "TOKEN", "AT", "URI"]
    assert (old[:3], new[:3], new[4]) == (["page.bin", "3", "1"], ["page.bin", "6", "1"], uri)
    assert [one["size"] for one in relet("artifacts", "t-1", "--json").json["artifacts"]] == [3, 6]
    assert re.search(rf"artifact +page.bin, 6 bytes, by token 1, {uri}\n", relet("show", "t-1").out)
    assert relet("history", "t-1").out.splitlines()[-1].endswith(f"page.bin, 6 bytes  {uri}")


def test_bytes_are_printed_as_they_are(relet, attached):
    uri = attached()
    (old, new) = (one["uri"] for one in relet("artifacts", "t-1", "--json").json["artifacts"])
    assert new == uri
    for args, data in ((["t-1", "page.bin"], b"\x00\xffnew\n"), ([uri], b"\x00\xffnew\n"), ([old], b"old")):
        told = relet("cat", *args, "--json").json
        assert base64.b64decode(told["base64"]) == data
    assert set(relet("cat", "t-1", "page.bin", "--json").json) == {
        "name", "uri", "sha256", "size", "token", "at", "base64",
    }  # fmt: skip


@pytest.mark.slow
def test_bytes_go_through_processes_as_they_are(folder, process):
    process("submit", "q", "--id", "t-1")
    env = {"RELET_HANDLE": process("claim", "q", "--ttl", "30s").json["handle"]}
    done = process("attach", "page", "-", env=env, stdin="a\nb\x00")
    assert done.code == 0, done.err
    assert process("cat", "t-1", "page").out == "a\nb\x00"
    assert process("attach", "page", "-", stdin="a").code == 2


def test_a_damaged_artifact_is_not_printed(relet, attached, folder):
    digest = attached().partition(":")[2]
    stored = folder / "relet.db-artifacts" / "sha256" / digest[:2] / digest[2:]
    stored.chmod(0o600)
    stored.write_bytes(b"\x00\xffNEW\n")
    done = relet("cat", "t-1", "page.bin")
    assert (done.code, done.out) == (1, "")
    assert "RELET-ARTIFACT-DAMAGED" in done.err
    stored.unlink()
    done = relet("cat", "t-1", "page.bin")
    assert (done.code, done.out) == (10, "")
    assert "RELET-ARTIFACT-MISSING" in done.err


def test_an_artifact_too_large_for_an_object_is_refused_in_json_alone(relet, attached, monkeypatch):
    attached()
    monkeypatch.setattr("relet.core.limits.ARTIFACT_WHOLE_BYTES_MAX", 5)
    done = relet("cat", "t-1", "page.bin", "--json")
    assert (done.code, done.out) == (2, "")
    assert "leave out --json" in done.err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["a/b", "page"], 2),
        (["..", "page"], 2),
        (["page", "absent"], 2),
        (["page", "."], 2),
        (["page"], 2),
    ],
)
def test_an_attach_that_does_not_fit_keeps_nothing(relet, held, db, folder, args, code):
    (folder / "page").write_text("x")
    held()
    assert relet("attach", *args, *FILE).code == code
    assert db.artifacts("t-1") == []


def test_an_attach_under_a_lost_lease_is_5_and_nobody_sees_it(relet, clock, held, db, folder):
    (folder / "page").write_text("x")
    held(ttl="1s")
    clock.advance("2s")
    assert relet("attach", "page", "page", *FILE).code == 5
    assert db.artifacts("t-1") == []


@pytest.fixture
def saved(relet, held):
    held()
    for value in ('{"page": 1}', '{"page": 2, "read": ["a"]}', '{"page": 2, "read": ["a"]}'):
        relet("save", value, *FILE)
    relet("save", "7", "--name", "odd@2", *FILE)


def test_a_checkpoint_is_printed_by_name_and_version(relet, saved):
    assert relet("cat", "t-1", "main", "--checkpoint").json == {"page": 2, "read": ["a"]}
    assert relet("cat", "t-1", "main@1").out == '{\n  "page": 1\n}\n'
    assert relet("cat", "t-1", "main@2", "--checkpoint").json == {"page": 2, "read": ["a"]}
    assert relet("cat", "t-1", "odd@2", "--checkpoint").json == 7
    told = relet("cat", "t-1", "main@1", "--json").json
    assert (told["name"], told["version"], told["value"]) == ("main", 1, {"page": 1})


def test_what_changed_between_two_versions_is_a_unified_diff(relet, saved):
    text = (
        '--- main@1\n+++ main@2\n@@ -1,3 +1,6 @@\n {\n-  "page": 1\n+  "page": 2,\n+  "read": [\n+    "a"\n+  ]\n }\n'
    )
    assert relet("cat", "t-1", "main", "--diff", "1:2").out == text
    assert relet("cat", "t-1", "main", "--diff", "1:2", "--json").json["diff"] == text.splitlines()
    same = relet("cat", "t-1", "main", "--diff", "2:3")
    assert (same.code, same.out, "the same" in same.err) == (0, "", True)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["t-1", "main"], 10, "relet cat t-1 main --checkpoint"),
        (["t-1", "nope"], 10, "relet artifacts t-1"),
        (["t-1", "nope", "--checkpoint"], 10, "nothing is saved under that name"),
        (["t-1", "main@9"], 10, "kept are 1 to 3"),
        (["t-1", "main", "--diff", "1:9"], 10, "version 9"),
        (["t-1", "main", "--diff", "1"], 2, "write 3:4"),
        (["nope", "main"], 10, "no task nope"),
        (["t-1"], 2, "give TASK and NAME"),
        (["artifact:00"], 2, "64 digits"),
        ([f"artifact:{'0' * 64}"], 10, "RELET-ARTIFACT-MISSING"),
        (["artifact:00", "--checkpoint"], 2, "give TASK and NAME"),
        ([], 2, "TASK|URI"),
    ],
)
def test_what_there_is_not_is_said_with_the_way_on(relet, saved, args, code, words):
    done = relet("cat", *args)
    assert (done.code, done.out) == (code, "")
    assert words in done.err


def test_a_value_too_large_for_a_row_is_saved_loaded_and_handed_in_as_any_other(relet, held, folder):
    held()
    (folder / "large.json").write_text(f'"{"x" * 300_000}"')
    assert relet("save", "@large.json", *FILE).code == 0
    assert len(list((folder / "relet.db-artifacts").rglob("*/*/*"))) == 1
    assert relet("load", *FILE).json == "x" * 300_000
    assert relet("cat", "t-1", "main", "--checkpoint").json == "x" * 300_000
    assert relet("complete", "@large.json", *FILE).code == 0
    assert relet("result", "t-1").json == "x" * 300_000


def test_the_newest_note_is_shown(relet, held, db):
    held()
    assert relet("progress", "page 1 of 3", *FILE).out == "page 1 of 3\n"
    assert relet("progress", "-", *FILE, "--json", stdin="page 2 of 3\n").json["note"] == "page 2 of 3"
    assert re.search(r"progress +page 2 of 3\n", relet("show", "t-1").out)
    assert [str(event.kind) for event in db.history("t-1")] == ["submitted", "claimed"]
    assert relet("progress", *FILE).code == 2


def test_a_note_under_a_lost_lease_is_5(relet, clock, held, db):
    held(ttl="1s")
    clock.advance("2s")
    assert relet("progress", "still here", *FILE).code == 5
    assert db.task("t-1").progress is None


def aged(folder, days):
    """Everything in the place of artifacts was put so long ago."""
    for path in (folder / "relet.db-artifacts").rglob("*"):
        os.utime(path, times=(time.time() - days * DAY_S,) * 2)


@pytest.fixture
def littered(attached, db, folder):
    """One artifact that a task names, one that nobody does, both two days old."""
    attached()
    stored = db.files.place.put(b"nobody's")
    aged(folder, 2)
    return stored.uri


def test_bytes_that_nobody_names_are_collected_by_age(relet, littered, db):
    assert relet("artifacts", "--collect", "--older", "3d").out == "0 artifacts, 0 bytes\n"
    dry = relet("artifacts", "--collect", "--dry-run")
    assert (dry.out, "nothing was removed" in dry.err) == ("1 artifacts, 8 bytes\n", True)
    assert db.files.place.exists(littered)
    assert relet("artifacts", "--collect", "--json").json == {"n": 1, "bytes": 8, "dry_run": False}
    assert not db.files.place.exists(littered)
    assert relet("cat", "t-1", "page.bin", "--json").code == 0
    assert "nothing to collect" in relet("artifacts", "--collect").err


def test_a_store_that_is_not_there_collects_nothing_from_a_place_that_is(relet, littered, db, folder, monkeypatch):
    """It would name nothing, so that all of another store's bytes would go."""
    monkeypatch.setenv("RELET_ARTIFACTS", str(folder / "relet.db-artifacts"))
    done = relet("artifacts", "--collect", "--yes", "--url", "sqlite:///mistyped.db")
    assert done.code == 0
    assert "there is no such file yet" in done.err
    assert db.files.place.exists(littered)


def test_a_place_that_may_be_shared_is_collected_only_when_somebody_says_so(relet, littered, db, folder, monkeypatch):
    monkeypatch.setenv("RELET_ARTIFACTS", str(folder / "relet.db-artifacts"))
    done = relet("artifacts", "--collect")
    assert (done.code, done.out) == (2, "")
    assert "Nothing was removed; add --yes" in done.err
    assert relet("artifacts", "--collect", "--dry-run").out == "1 artifacts, 8 bytes\n"
    assert db.files.place.exists(littered)
    assert relet("artifacts", "--collect", "--yes").out == "1 artifacts, 8 bytes\n"
    assert not db.files.place.exists(littered)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "one task's id, or --collect"),
        (["t-1", "--collect"], "one task's id, or --collect"),
        (["t-1", "--dry-run"], "go with it"),
        (["t-1", "--older", "2d"], "go with it"),
        (["--collect", "--older", "59m"], "outside 1h"),
        (["--collect", "--older", "soon"], "older"),
    ],
)
def test_a_collection_that_does_not_fit_is_usage(relet, args, words):
    relet("submit", "q", "--id", "t-1")
    done = relet("artifacts", *args)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
