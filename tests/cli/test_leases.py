"""The commands of shell agents: claim, renew, save, load, complete, fail, release."""

import os
import stat
import subprocess

import pytest

from tests.cli.conftest import program

HANDLE = ("--handle-file", "t-1.handle")


def test_a_claim_prints_what_its_holder_needs(relet):
    relet("submit", "q", '{"n": 1}', "--id", "t-1", "--label", "a=b")
    claimed = relet("claim", "q", "--holder", "A", "--ttl", "90s").json
    assert claimed | {"handle": "", "expires_in": 0, "renew_by": ""} == {
        "task_id": "t-1", "handle": "", "handle_file": None, "token": claimed["token"], "attempt": 1, "holder": "A",
        "queue": "q", "kind": "q", "labels": {"a": "b"}, "input": {"n": 1}, "ttl": 90.0, "expires_in": 0,
        "renew_by": "", "took_over": None,
    }  # fmt: skip
    assert claimed["handle"].startswith("r1.")
    assert 89 < claimed["expires_in"] <= 90


def test_a_handle_goes_to_a_file_that_only_its_owner_reads(relet, folder):
    relet("submit", "q", "--id", "t-1")
    (folder / "h").write_text("an older one")
    (folder / "h").chmod(0o644)
    done = relet("claim", "q", "--handle-file", "h")
    assert stat.S_IMODE((folder / "h").stat().st_mode) == 0o600
    assert done.json["handle"] is None
    assert "r1." not in done.out + done.err
    assert relet("renew", "--handle-file", "h").code == 0
    assert sorted(os.listdir(folder)) == ["h", "relet.db", "relet.db-gate", "relet.db-open"]


def test_a_handle_file_that_cannot_be_written_is_refused_before_the_claim(relet, db):
    relet("submit", "q", "--id", "t-1")
    done = relet("claim", "q", "--handle-file", "absent/h")
    assert done.code == 2
    assert "nothing was claimed" in done.err
    assert db.task("t-1").token is None


def test_nothing_to_claim_is_3_and_names_the_store(relet, folder):
    done = relet("claim", "q", "r", "--handle-file", "h")
    assert (done.code, done.out) == (3, "")
    assert f"{folder}/relet.db" in done.err
    assert not (folder / "h").exists()


def test_nothing_to_claim_in_json_is_an_object_on_stderr(relet):
    done = relet("claim", "q", "--json")
    assert (done.code, done.out) == (3, "")
    assert done.error["code"] == "RELET-NOTHING"
    assert done.error["detail"]["queues"] == ["q"]


def test_a_task_that_another_holds_is_6_and_names_it(relet, held):
    token = held()["token"]
    done = relet("claim", "--task", "t-1", "--json")
    assert (done.code, done.out) == (6, "")
    assert (done.error["code"], done.error["detail"]["holder"]) == ("RELET-HELD", "A")
    assert done.error["detail"]["token"] == token


def test_ob_04_a_second_start_is_refused_and_told_and_goes_on_once_the_lease_has_expired(relet, held, clock):
    first = held(holder="pod-1")
    again = ("claim", "--task", "t-1", "--holder", "pod-2", "--handle-file", "second")
    done = relet(*again)
    assert done.code == 6
    assert "pod-1" in done.err
    clock.advance("60s")
    second = relet(*again)
    assert second.code == 0, second.err
    assert (second.json["attempt"], second.json["took_over"]["token"]) == (2, first["token"])
    assert second.json["token"] > first["token"]


def test_a_task_that_is_not_due_is_3_and_says_when(relet):
    relet("submit", "q", "--id", "t-1", "--delay", "5m")
    done = relet("claim", "--task", "t-1")
    assert done.code == 3
    assert "due in 4m59s" in done.err or "due in 5m00s" in done.err


def test_a_task_of_a_paused_queue_is_3(relet):
    relet("submit", "q", "--id", "t-1")
    relet("pause", "q")
    assert relet("claim", "--task", "t-1").code == 3


def test_an_unknown_task_is_10_and_a_finished_one_11(relet, held):
    held()
    relet("complete", *HANDLE)
    assert relet("claim", "--task", "nope").code == 10
    assert relet("claim", "--task", "t-1").code == 11


def test_a_claim_needs_a_queue_or_a_task(relet):
    assert relet("claim").code == 2
    assert relet("claim", "q", "--task", "t-1").code == 2
    assert relet("claim", "q", "--resume").code == 2


def test_the_same_request_id_gets_the_same_lease(relet):
    relet("submit", "q", "--lines", stdin="1\n2\n")
    first, second = (relet("claim", "q", "--holder", "A", "--request-id", "k").json for _ in range(2))
    assert first["token"] == second["token"]


def test_the_last_holder_may_resume_before_the_delay_is_over(relet, held, clock):
    for _ in range(2):
        # The second loss in a row makes the task wait.
        held(ttl="1s")
        clock.advance("2s")
        relet("sweep")
        lapsed = relet("claim", "--task", "t-1")
        if lapsed.code == 0:
            (relet("release", stdin=lapsed.out))
    done = relet("claim", "--task", "t-1", "--resume", *HANDLE)
    assert done.code == 0, done.err


def test_a_lease_whose_handle_nobody_could_read_is_given_back(relet, db, folder):
    relet("submit", "q", "--id", "t-1")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [program(), "claim", "q"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False, cwd=folder
    )
    os.close(writer)
    assert done.returncode == 1
    assert "given back" in done.stderr
    assert (str(db.task("t-1").state), db.task("t-1").attempt) == ("ready", 1)


def test_a_renewal_prints_the_seconds_left(relet, held):
    held(ttl="60s")
    assert relet("renew", *HANDLE).out == "60\n"
    assert relet("renew", "--ttl", "2m", *HANDLE, "--json").json["expires_in"] == 120


@pytest.mark.parametrize("way", ["file", "variable", "stdin", "stdin named", "what claim printed"])
def test_a_handle_comes_from(way, relet, folder, monkeypatch):
    relet("submit", "q", "--id", "t-1")
    printed = relet("claim", "q")
    handle = printed.json["handle"]
    (folder / "h").write_text(handle)
    if way == "variable":
        monkeypatch.setenv("RELET_HANDLE", handle)
    args = {"file": ["--handle-file", "h"], "stdin named": ["--handle-file", "-"]}.get(way, [])
    stdin = {"stdin": f"{handle}\n", "stdin named": handle, "what claim printed": printed.out}.get(way)
    assert relet("renew", *args, stdin=stdin).code == 0


@pytest.mark.parametrize(
    "args",
    [
        ["renew", "{}"],
        ["renew", "--handle", "{}"],
        ["renew", "--handle={}"],
        ["save", "{}", "1"],
        ["fail", "{}"],
        ["claim", "--task", "{}"],
    ],
)
def test_a_handle_among_the_arguments_is_refused_and_not_repeated(relet, held, folder, args):
    held()
    handle = (folder / "t-1.handle").read_text().strip()
    done = relet(*[arg.format(handle) for arg in args], stdin="")
    assert done.code == 2
    assert "RELET-HANDLE-IN-ARGV" in done.err
    assert handle not in done.out + done.err


@pytest.mark.parametrize("stdin", [None, "", "  \n", "r1.x", "{}", '{"handle": 3}', "[]"])
def test_no_handle_or_a_damaged_one_is_refused_as_usage(relet, stdin):
    done = relet("renew", stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert "handle" in done.err


def test_a_handle_of_another_store_is_10_and_names_this_one(relet, held, folder):
    held()
    done = relet("renew", *HANDLE, "--url", "sqlite:///other.db")
    assert done.code == 10
    assert f"{folder}/other.db" in done.err


def test_a_lost_lease_is_5_for_every_verb_and_changes_nothing(relet, held, clock):
    held(ttl="1s")
    clock.advance("2s")
    before = relet("claim", "--task", "t-1", "--holder", "B", "--handle-file", "b").json
    for words in (["renew"], ["save", "1"], ["complete", "1"], ["fail", "x"], ["release"]):
        done = relet(*words, *HANDLE, "--json")
        assert (done.code, done.out) == (5, ""), words
        assert (done.error["code"], done.error["detail"]["reason"]) == ("RELET-LEASE-LOST", "superseded")
    task = relet("show", "t-1", "--json").json["task"]
    assert (task["holder"], task["token"], task["live"]) == ("B", before["token"], True)


def test_what_was_saved_is_loaded(relet, held):
    held()
    assert relet("save", '{"page": 3}', *HANDLE).out == "1\n"
    assert relet("save", "-", "--name", "other", *HANDLE, "--json", stdin="[1]").json["version"] == 1
    assert relet("load", *HANDLE).json == {"page": 3}
    assert relet("load", "--name", "other", *HANDLE).json == [1]


def test_nothing_saved_is_null_and_names_the_store(relet, held, folder):
    held()
    done = relet("load", *HANDLE)
    assert (done.code, done.out) == (0, "null\n")
    assert f"{folder}/relet.db" in done.err


def test_stdin_cannot_be_both_value_and_handle(relet, held):
    held()
    done = relet("save", "-", stdin="1")
    assert done.code == 2
    assert "stdin is taken" in done.err


def test_a_save_that_is_not_json_is_refused(relet, held):
    held()
    assert relet("save", "page 3", *HANDLE).code == 2
    assert relet("load", *HANDLE).json is None


def test_a_completion_is_repeatable_and_the_first_one_stands(relet, held):
    held()
    assert relet("complete", '{"r": 1}', *HANDLE).out == "done\n"
    assert relet("complete", '{"r": 1}', *HANDLE, "--json").json["state"] == "done"
    assert relet("complete", '{"r": 2}', *HANDLE).code == 11
    assert relet("result", "t-1").json == {"r": 1}


def test_a_failure_is_tried_again_after_the_delay(relet, held, db):
    held()
    done = relet("fail", "503", "--delay", "5m", "--code", "HTTP-503", *HANDLE, "--json").json
    assert (done["state"], done["delay"] >= 300) == ("ready", True)
    assert (db.task("t-1").error, db.task("t-1").code) == ("503", "HTTP-503")


def test_a_failure_for_good_is_a_dead_letter(relet, held, db):
    held()
    assert relet("fail", "-", "--no-retry", *HANDLE, stdin="long story\n").out == "failed (permanent)\n"
    assert db.task("t-1").error == "long story"


def test_a_failure_without_words_is_refused(relet, held, db):
    held()
    assert relet("fail", *HANDLE).code == 2
    assert db.task("t-1").live


def test_a_release_costs_no_attempt(relet, held, db):
    held()
    assert relet("release", *HANDLE).out == "ready\n"
    assert (str(db.task("t-1").state), db.task("t-1").attempt) == ("ready", 1)
    assert relet("release", "--delay", "never", *HANDLE).code == 2
