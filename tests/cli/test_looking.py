"""Commands that only look: ls, show, result, history, watch, stats, rejections."""

import json
import re
from datetime import datetime, timedelta

import pytest

from relet.core.bond import bound
from relet.core.model import GivenBack
from relet.core.rules.bury import Bury
from relet.core.rules.claim import Claim
from relet.store.sqlite.death import BURY


def test_ls_has_a_line_for_each_task(relet, held):
    held("t-1")
    relet("submit", "q", "--id", "t-2", "--delay", "10m")
    head, first, second = relet("ls").out.splitlines()
    assert re.split(r" {2,}", head) == ["ID", "QUEUE", "STATE", "HOLDER", "TOKEN", "EXPIRES IN", "ATTEMPT", "AGE"]
    assert re.split(r" {2,}", first)[:4] == ["t-1", "q", "● leased", "A"]
    assert re.split(r" {2,}", second)[:2] == ["t-2", "q"]
    assert "◌ ready in " in second


def test_ls_tells_a_lapsed_lease_from_a_held_one(relet, held, clock):
    held(ttl="3s")
    clock.advance("2s")
    assert relet("ls", "--json").json["tasks"][0]["live"] is True
    clock.advance("2s")
    assert "leased (lapsed)" in relet("ls").out


def test_ls_lists_those_that_a_holder_has_lost(relet, held, clock, monkeypatch):
    monkeypatch.setattr("relet.cli.commands.ls.PAGE_ITEMS_MAX", 2)
    for name in ("t-1", "t-2", "t-3", "t-4", "t-5"):
        held(name, ttl="3s" if name in ("t-2", "t-4", "t-5") else "60s")
    clock.advance("4s")
    relet("sweep")
    assert [one["id"] for one in relet("ls", "--lost", "--json").json["tasks"]] == ["t-2", "t-4", "t-5"]
    page = relet("ls", "--lost", "--limit", "2", "--json").json
    assert ([one["id"] for one in page["tasks"]], page["next"]) == (["t-2", "t-4"], "t-4")
    assert [one["id"] for one in relet("ls", "--lost", "--after", "t-4", "--json").json["tasks"]] == ["t-5"]
    assert "no such task" in relet("ls", "--lost", "--queue", "other").err


def test_a_dead_letter_was_taken_over_by_nobody_and_will_not_be(relet, held, clock):
    relet("submit", "q", "--id", "t-1", "--max-losses", "1")
    relet("claim", "--task", "t-1", "--ttl", "3s", "--handle-file", "t-1.handle")
    clock.advance("4s")
    relet("sweep")
    shown = relet("show", "t-1").out
    assert " by nobody at " in shown
    assert "its lease lapsed once without a save" in shown


def test_ls_takes_conditions_and_pages(relet):
    for name, queue, label in (("a", "q", "x"), ("b", "q", "y"), ("c", "r", "x")):
        relet("submit", queue, "--id", name, "--label", f"l={label}")

    def ids(*args):
        return [task["id"] for task in relet("ls", *args, "--json").json["tasks"]]

    assert ids("--queue", "q") == ["a", "b"]
    assert ids("--label", "l=x") == ["a", "c"]
    assert ids("--state", "ready", "--queue", "r") == ["c"]
    assert ids("--state", "done") == []
    page = relet("ls", "--limit", "2", "--json").json
    assert page["next"] == "b"
    assert ids("--after", page["next"]) == ["c"]
    assert "--after b" in relet("ls", "--limit", "2").err


def test_a_name_cannot_move_the_cursor_or_hide_text(relet, held):
    held()
    relet("fail", "\x1b[2Jgone\r\u202e", "--no-retry", "--handle-file", "t-1.handle")
    out = relet("show", "t-1").out
    assert "\\x1b[2Jgone\\r\\u202e" in out
    err = relet("result", "t-1").err
    assert "\\x1b[2Jgone" in err
    assert not set("\x1b\r\u202e") & set(out + err)


@pytest.mark.parametrize(
    "args", [["ls"], ["ls", "--state", "done"], ["stats"], ["rejections"], ["stats", "--queue", "none"]]
)
def test_an_empty_answer_names_the_store(relet, folder, args):
    relet("claim", "q")  # makes the store
    done = relet(*args)
    assert (done.code, done.out) == (0, "")
    assert f"in {folder}/relet.db" in done.err


@pytest.mark.parametrize(
    "args", [["ls"], ["stats"], ["rejections"], ["show", "x"], ["history", "x"], ["result", "x"]]
)
def test_looking_makes_no_store_where_there_is_none(relet, folder, args):
    done = relet(*args)
    assert done.code == (10 if "x" in args else 0)
    assert f"{folder}/relet.db (there is no such file yet)" in done.err
    assert list(folder.iterdir()) == []


OF_A_HANDLE = [
    "renew", "save 1", "load", "attach p ../here/t-1.handle", "progress 1", "park x", "answer x", "complete",
    "fail x", "release",
]  # fmt: skip
OF_WHAT_IS_THERE = [
    "sweep", "prune", "prune --dry-run", "prune --older 1d", "cancel x", "cancel --all --yes", "requeue x",
    "requeue --all --yes", "signal x go", "decide x publish accept", "reconcile e applied",
    *(f"{verb} --handle-file ../here/t-1.handle" for verb in OF_A_HANDLE),
]  # fmt: skip


@pytest.mark.parametrize("command", OF_WHAT_IS_THERE)
def test_in_the_wrong_folder_a_command_about_what_is_there_makes_no_store(relet, held, folder, monkeypatch, command):
    held()
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    done = relet(*command.split())
    assert done.code == (0 if command.startswith(("sweep", "prune")) or "--all" in command else 10)
    assert f"{elsewhere}/relet.db (there is no such file yet)" in done.err
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("verb", ["show", "history", "result"])
def test_an_unknown_task_is_10_and_names_the_store(relet, folder, verb):
    relet("claim", "q")
    done = relet(verb, "nope", "--json")
    assert (done.code, done.out) == (10, "")
    assert done.error["code"] == "RELET-NOT-FOUND"
    assert done.error["detail"]["place"] == f"{folder}/relet.db"


def test_ls_refuses_what_is_no_state_and_what_is_no_page(relet):
    assert relet("ls", "--state", "running").code == 2
    assert relet("ls", "--limit", "0").code == 2
    assert relet("ls", "--after", "nope").code == 10


def taken_over(relet, held, clock):
    """A held it, and fell silent; B took it over; A tried to go on."""
    old = held(ttl="3s", holder="A")
    relet("save", "1", "--name", "page", "--handle-file", "t-1.handle")
    clock.advance("2s")
    relet("renew", "--handle-file", "t-1.handle")
    clock.advance("5s")
    new = relet("claim", "q", "--holder", "B", "--ttl", "60s", "--handle-file", "b.handle").json
    clock.advance("1s")
    assert relet("complete", '{"late": true}', "--handle-file", "t-1.handle").code == 5
    return old, new


@pytest.mark.case("OB-01")
def test_show_tells_who_holds_it_and_why_it_was_taken_over(relet, held, clock):
    old, new = taken_over(relet, held, clock)
    told = relet("show", "t-1").out
    assert re.search(rf"held by +B, token {new['token']}, since \S+Z \(", told)
    assert re.search(r"ttl +1m00s", told)
    assert re.search(r"heartbeat +last .* ago, at \S+Z", told)
    assert re.search(r"expires +in \S+, at \S+Z", told)
    assert re.search(r"attempt +2: 0 failures and 1 loss so far", told)
    line = next(line for line in told.splitlines() if "taken over" in line)
    assert f"from A (token {old['token']}) by B (token {new['token']})" in line
    assert "expired; last renewed at" in line
    assert "silent for 5.0s, expired at " in line
    refused = next(line for line in told.splitlines() if "refused" in line)
    assert "complete by A" in refused
    assert refused.endswith(f"token {old['token']} (now {new['token']}), superseded, 3.0s late")
    assert re.search(r"checkpoint +page, saved 1 times", told)
    assert re.search(r"next +relet cancel t-1", told)


def test_show_in_json_has_the_same_facts(relet, held, clock):
    old, new = taken_over(relet, held, clock)
    told = relet("show", "t-1", "--json").json
    (takeover,) = told["takeovers"]
    assert (takeover["from_holder"], takeover["from_token"]) == ("A", old["token"])
    assert (takeover["to_holder"], takeover["to_token"]) == ("B", new["token"])
    assert (takeover["reason"], takeover["silent_ms"]) == ("expired", 5_000)
    (rejection,) = told["rejections"]
    assert (rejection["verb"], rejection["late_ms"], rejection["result"]) == ("complete", 3_000, {"late": True})
    assert [item["name"] for item in told["checkpoints"]] == ["page"]
    assert told["ttl"] == 60


def test_show_of_a_lapsed_lease_says_since_when_and_what_to_do(relet, held, clock):
    held(ttl="3s")
    clock.advance("10s")
    told = relet("show", "t-1").out
    assert re.search(r"was held by +A", told)
    assert re.search(r"expires +lapsed .* ago, at \S+Z; not yet taken back", told)
    assert re.search(r"next +relet sweep", told)


def test_show_of_a_dead_letter_has_the_error_and_the_way_back(relet, held):
    held()
    relet("fail", "no such site", "--no-retry", "--code", "GONE", "--handle-file", "t-1.handle")
    told = relet("show", "t-1").out
    assert re.search(r"held by +nobody; last by A", told)
    assert re.search(r"error +no such site \[GONE\]", told)
    assert re.search(r"next +relet requeue t-1", told)


def test_show_of_a_lease_at_risk_points_to_a_worker_and_not_to_the_end_of_the_task(relet, held, clock):
    held(ttl="60s")
    clock.advance("50s")
    told = relet("show", "t-1").out
    assert "at risk" in told
    assert re.search(r"next +relet worker MODULE:APP +\(it is at risk; ", told)


def test_show_of_an_input_that_does_not_fit_asks_for_another_one(relet):
    relet("submit", "q", '{"n": "many"}', "--id", "t-1", "--kind", "count")
    relet("claim", "--task", "t-1", "--handle-file", "t-1.handle")
    relet("fail", "n does not fit int", "--no-retry", "--code", "RELET-INPUT", "--handle-file", "t-1.handle")
    told = relet("show", "t-1").out
    assert re.search(r"queue +q, kind count\n", told)
    assert re.search(r"next +relet submit q INPUT --kind count +\(with an input that fits; ", told)
    assert "relet requeue" not in told


def test_the_next_command_of_an_odd_id_can_be_pasted(relet):
    relet("submit", "q", "--id", "two words", "--exclusive", "k", "--deadline", "2099-01-01T00:00:00Z")
    relet("cancel", "two words")
    assert "relet requeue 'two words'" in relet("show", "two words").out


def test_a_result_is_printed_as_json_with_and_without_the_flag(relet, held):
    held()
    relet("complete", '{"b": 1, "a": "ü"}', "--handle-file", "t-1.handle")
    assert relet("result", "t-1").out == relet("result", "t-1", "--json").out == '{"a":"ü","b":1}\n'


@pytest.mark.parametrize("wait", ["0", "10ms"])
def test_a_result_that_does_not_come_is_124(relet, wait):
    relet("submit", "q", "--id", "t-1")
    done = relet("result", "t-1", "--wait", wait, "--json")
    assert (done.code, done.out) == (124, "")
    assert done.error["code"] == "RELET-TIMEOUT"


def test_the_result_of_a_failed_or_cancelled_task_is_1(relet, held):
    held()
    relet("fail", "broken", "--no-retry", "--handle-file", "t-1.handle")
    relet("submit", "q", "--id", "t-2")
    relet("cancel", "t-2")
    for name, code in (("t-1", "RELET-TASK-FAILED"), ("t-2", "RELET-TASK-CANCELLED")):
        done = relet("result", name, "--json")
        assert (done.code, done.error["code"]) == (1, code)
    assert relet("result", "t-1", "--wait", "soon").code == 2


def test_history_has_a_line_for_each_change(relet, held):
    held()
    relet("save", "1", "--handle-file", "t-1.handle")
    lines = relet("history", "t-1").out.splitlines()
    assert [line.split()[1] for line in lines] == ["submitted", "claimed", "saved"]
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  saved +A token \d+  name=main", lines[2])
    told = relet("history", "t-1", "--json").json
    assert (told["task_id"], len(told["events"])) == ("t-1", 3)


def test_watch_streams_an_object_a_line(relet, held):
    held("t-1")
    held("t-2")
    done = relet("watch", "--after", "0", "--limit", "4", "--json")
    changes = [json.loads(line) for line in done.out.splitlines()]
    assert [change["kind"] for change in changes] == ["submitted", "claimed", "submitted", "claimed"]
    after = relet("watch", "--after", changes[1]["seq"], "--task", "t-2", "--limit", "1").out
    assert after.split()[1:4] == ["q", "t-2", "submitted"]
    assert relet("watch", "--limit", "0").code == 2


def test_ob_01_show_lists_all_of_a_takeover(relet, held, clock):
    old, new = taken_over(relet, held, clock)
    account = relet("show", "t-1", "--json").json
    (takeover,) = account["takeovers"]
    assert (takeover["from_holder"], takeover["from_token"]) == ("A", old["token"])
    assert (takeover["to_holder"], takeover["to_token"]) == (new["holder"], new["token"])
    assert (takeover["reason"], takeover["clock"]) == ("expired", "store")
    renewed, expired = (datetime.fromisoformat(takeover[name]) for name in ("last_renewal", "expired_at"))
    assert expired - renewed == timedelta(seconds=3)
    assert expired <= datetime.fromisoformat(takeover["lapsed_at"]) <= datetime.fromisoformat(takeover["taken_at"])
    (line,) = [line for line in relet("show", "t-1").out.splitlines() if "taken over" in line]
    assert f"from A (token {old['token']}) by B (token {new['token']}) at " in line
    assert ": expired; last renewed at " in line
    assert line.endswith("by the store's clock")


def test_ob_01_a_takeover_from_a_dead_process_is_shown_and_ended_before_its_time(relet, db):
    db.backend.vouch("0123abcd")
    db.submit("q", id="t-1")
    (old,) = db.backend.call(Claim(holder="A", queues=["q"], call_id=bound("0123abcd", "c1")))
    assert db.backend.store.answer(BURY, Bury(lock="0123abcd"), "default").n == 1
    relet("claim", "q", "--holder", "B")
    (takeover,) = relet("show", "t-1", "--json").json["takeovers"]
    assert (takeover["reason"], takeover["expired_at"]) == ("holder_died", None)
    assert takeover["from_token"] == old.handle.token
    (line,) = [line for line in relet("show", "t-1").out.splitlines() if "taken over" in line]
    assert ": holder_died; last renewed at " in line
    assert line.endswith(", as its process had ended")


def test_ob_01_reasons_are_told_apart(relet, held, clock, db):
    """Expired, capped, released, stopped with its worker, let go by its holder's clock or in silence, cancelled."""
    held("t-1", ttl="60s")
    relet("release", "--handle-file", "t-1.handle")
    for why in (GivenBack.WORKER_STOPPED, GivenBack.HOLDER_EXPIRED, GivenBack.MAX_SILENCE):
        db.claim(task_id="t-1", holder="B").give_back(why)
        clock.advance("2s")
    db.claim(task_id="t-1", holder="C").save(1)
    account = relet("show", "t-1", "--json").json
    assert [one["reason"] for one in account["released"]] == ["released", "worker_stopped"]
    assert [one["to_holder"] for one in account["released"]] == ["B", "B"]
    told = [(one["reason"], one["by"], one["clock"], one["expired_at"]) for one in account["takeovers"]]
    assert told == [("expired", "holder_expired", "holder", None), ("expired", "max_silence", "holder", None)]
    assert ": expired (max_silence); last renewed at " in relet("show", "t-1").out
    assert "by its holder's own clock" in relet("show", "t-1").out
    assert "given back" in relet("show", "t-1").out
    assert ": worker_stopped; then claimed by B" in relet("show", "t-1").out
    db.submit("r", id="t-2", max_hold=60)
    db.claim("r")
    clock.advance("61s")
    db.sweep()
    assert [one["reason"] for one in relet("show", "t-1", "--json").json["takeovers"]] == ["expired"] * 3
    assert [one["reason"] for one in relet("show", "t-2", "--json").json["takeovers"]] == ["capped"]
    db.cancel("t-1", "enough")
    assert relet("show", "t-1", "--json").json["task"]["reason"] == "enough"


def test_stats_count_by_queue(relet, held, clock):
    taken_over(relet, held, clock)
    relet("submit", "r")
    told = relet("stats", "--json").json
    assert [row["queue"] for row in told["queues"]] == ["q", "r"]
    assert (told["queues"][0]["live"], told["queues"][0]["takeovers"]) == (1, 1)
    assert told["rejections"] == {"superseded": 1}
    assert told["total"]["ready"] == 1
    assert relet("stats").out.splitlines()[3].startswith("in all")
    text = relet("stats", "--queue", "q").out
    assert len(text.splitlines()) == 3
    assert "refused writes: 1 superseded" in text
    assert relet("stats", "--queue", "x" * 300).code == 2


def test_rejections_say_who_came_how_late(relet, held, clock):
    old, new = taken_over(relet, held, clock)
    line = relet("rejections", "--task", "t-1").out.splitlines()[1]
    assert re.split(r" {2,}", line)[2:] == [
        "t-1", "complete", "A", str(old["token"]), str(new["token"]), "superseded", "3.0s",
    ]  # fmt: skip
    page = relet("rejections", "--limit", "1", "--json").json
    assert page["next"] == page["rejections"][0]["seq"]
    assert relet("rejections", "--before", page["next"], "--json").json["rejections"] == []
    assert relet("rejections", "--limit", "0").code == 2
