"""What people are asked and what they answer: park, waits, decide, signal, answer, and what result says meanwhile."""

import json
import re

import pytest

from relet.cli.answers import who

FILE = ("--handle-file", "t-1.handle")


@pytest.fixture
def asked(relet, held):
    """A task that waits for a person."""

    def call(*args):
        held()
        done = relet("park", "publish", "--ask", '{"draft": "grain"}', *args, *FILE)
        assert done.code == 0, done.err
        return done

    return call


def test_a_task_is_parked_with_its_question_and_costs_no_attempt(asked, db):
    assert asked().out == "waiting\n"
    task = db.task("t-1")
    assert (str(task.state), task.waiting_for, task.attempt, task.live) == ("waiting", "publish", 1, False)
    (wait,) = db.waits()
    assert (str(wait.kind), wait.ask, wait.due_at) == ("approval", {"draft": "grain"}, None)


def test_the_inbox_has_all_that_is_asked_and_the_command_that_answers_it(relet, asked, clock):
    asked("--timeout", "2h")
    clock.advance("90s")
    head, *rows = relet("waits").out.splitlines()
    told = dict(row.split(maxsplit=1) for row in rows)
    assert head == "t-1  publish  approval in q"
    assert re.fullmatch(r"\S+Z \(1m30s\)", told["since"])
    assert re.fullmatch(r"\S+Z \(in 1h58m\)", told["until"])
    assert told["ask"] == '{"draft":"grain"}'
    command = told["answer"].partition("    ")[0]
    assert command == f"relet decide t-1 publish accept --digest {told['digest']}"
    assert relet(*command.split()[1:]).code == 0
    assert relet("waits").out == ""


def test_the_inbox_in_json_has_the_same(relet, asked):
    asked()
    (wait,) = relet("waits", "--json").json["waits"]
    assert (wait["task_id"], wait["name"], wait["kind"], wait["open"], wait["decision"]) == (
        "t-1", "publish", "approval", True, None,
    )  # fmt: skip
    assert wait["ask"] == {"draft": "grain"}
    assert wait["next"] == f"relet decide t-1 publish accept --digest {wait['digest']}"


def test_the_inbox_takes_conditions_and_leaves_out_what_only_time_answers(relet, held):
    for name, kind in (("t-1", "approval"), ("t-2", "signal"), ("t-3", "timer")):
        held(name)
        args = ["--timeout", "1h"] if kind == "timer" else []
        assert relet("park", f"the {kind}", "--kind", kind, *args, "--handle-file", f"{name}.handle").code == 0

    def ids(*args):
        return [wait["task_id"] for wait in relet("waits", *args, "--json").json["waits"]]

    assert ids() == ["t-1", "t-2"]
    assert ids("--kind", "timer") == ids("t-3") == ["t-3"]
    assert (ids("--queue", "q"), ids("--queue", "r")) == (["t-1", "t-2"], [])
    assert "relet signal t-2 'the signal'" in relet("waits").out
    assert "answer" not in relet("waits", "t-3").out


def test_a_task_shows_its_decisions_too(relet, asked, db):
    asked()
    db.decide("t-1", "publish", "edit", {"draft": "briefly"}, by="ann")
    told = relet("waits", "t-1").out
    assert re.search(r'decided +edit by ann at \S+Z: \{"draft":"briefly"\}', told)
    assert "relet decide" not in told


@pytest.mark.parametrize(
    ("args", "code"),
    [(["nope"], 10), (["t-1", "--queue", "q"], 2), (["--kind", "nothing"], 2), (["--queue", ""], 2)],
)
def test_waits_refuses_what_does_not_fit(relet, asked, args, code):
    asked()
    assert relet("waits", *args).code == code


def test_nobody_asked_names_the_store(relet, folder):
    done = relet("waits")
    assert (done.code, done.out) == (0, "")
    assert f"{folder}/relet.db (there is no such file yet)" in done.err


@pytest.mark.parametrize(
    ("args", "stdin", "value"),
    [
        (["accept"], None, None),
        (["edit", "--value", '{"n": 2}'], None, {"n": 2}),
        (["edit", "--value-file", "value.json"], None, [1]),
        (["respond", "--value-file", "-"], '"later"', "later"),
        (["respond", "--value", "-"], '"later"', "later"),
        (["deny", "--value", '"no"'], None, "no"),
        (["ignore"], None, None),
    ],
)
def test_each_decision_is_kept_with_its_value_and_by_whom(relet, asked, folder, db, args, stdin, value):
    (folder / "value.json").write_text("[1]")
    asked()
    done = relet("decide", "t-1", "publish", *args, "--by", "ann", stdin=stdin)
    assert (done.code, done.out) == (0, f"{args[0]} by ann\n")
    (wait,) = db.waits("t-1")
    assert (str(wait.decision.kind), wait.decision.value, wait.decision.by) == (args[0], value, "ann")
    assert str(db.task("t-1").state) == "ready"


def test_a_decision_in_json_says_whether_it_may_be_done(relet, asked):
    asked()
    told = relet("decide", "t-1", "publish", "deny", "--by", "ann", "--json").json
    assert (told["task_id"], told["name"], told["kind"], told["accepted"]) == ("t-1", "publish", "deny", False)
    assert set(told) == {"task_id", "name", "n", "kind", "value", "by", "at", "digest", "accepted"}


def test_who_decides_is_the_login_name_unless_given(relet, asked, monkeypatch):
    monkeypatch.setenv("LOGNAME", "bo")
    asked()
    assert relet("decide", "t-1", "publish", "accept").out == "accept by bo\n"
    assert who("ann") == "ann"


def test_a_user_without_a_login_name_must_say_who_decides(relet, asked, monkeypatch):
    def nobody():
        raise KeyError("no such user")

    monkeypatch.setattr("getpass.getuser", nobody)
    asked()
    done = relet("decide", "t-1", "publish", "accept")
    assert done.code == 2
    assert "--by NAME" in done.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["edit"], "edit carries the edited version; give it by --value JSON"),
        (["respond"], "respond carries what you say; give it by --value JSON"),
        (["edit", "--value", "grain"], "text needs quotes"),
        (["edit", "--value", "1", "--value-file", "x"], "given twice"),
        (["edit", "--value-file", "absent.json"], "absent.json"),
        (["timeout"], "'timeout' is not one of"),
        (["accept", "--by", ""], "by: "),
    ],
)
def test_a_decision_that_does_not_fit_is_usage_and_decides_nothing(relet, asked, db, args, words):
    asked()
    done = relet("decide", "t-1", "publish", *args)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert str(db.task("t-1").state) == "waiting"


@pytest.mark.parametrize(
    ("before", "args", "code"),
    [
        ([], ["t-1", "other", "accept"], "RELET-NOT-ASKED"),
        ([], ["t-1", "publish", "accept", "--digest", "0" * 32], "RELET-OTHER-QUESTION"),
        (["decide", "t-1", "publish", "deny"], ["t-1", "publish", "accept"], "RELET-ALREADY-DECIDED"),
        (["cancel", "t-1"], ["t-1", "publish", "accept"], "RELET-NOT-ASKED"),
    ],
)
def test_a_decision_that_comes_too_late_or_to_another_question_is_11(relet, asked, before, args, code):
    asked()
    if before:
        relet(*before)
    done = relet("decide", *args, "--json")
    assert (done.code, done.out, done.error["code"]) == (11, "", code)


def test_a_decision_after_its_time_is_11_and_the_default_stands(relet, clock, asked, db):
    asked("--timeout", "1h", "--default", "deny")
    clock.advance("1h")
    done = relet("decide", "t-1", "publish", "accept", "--json")
    assert (done.code, done.error["code"]) == (11, "RELET-WAIT-OVER")
    (wait,) = db.waits("t-1")
    assert (str(wait.decision.kind), wait.decision.by) == ("deny", "timeout")


def test_a_task_that_is_not_there_is_10(relet):
    relet("claim", "q")
    assert relet("decide", "nope", "publish", "accept").code == 10
    assert relet("signal", "nope", "go").code == 10


def test_a_signal_is_taken_by_whom_it_was_waited_for_or_kept(relet, held, db):
    held()
    assert relet("signal", "t-1", "go", '{"n": 1}').out == "kept\n"
    assert relet("park", "go", "--kind", "signal", *FILE).out == "ready\n"
    assert relet("claim", "q", "--handle-file", "t-1.handle").code == 0
    assert relet("park", "go", "--kind", "signal", *FILE).out == "waiting\n"
    assert relet("signal", "t-1", "go", "-", "--json", stdin="2").json == {
        "task_id": "t-1", "name": "go", "taken": True, "kept": 0,
    }  # fmt: skip
    assert [wait.decision.value for wait in db.waits("t-1")] == [{"n": 1}, 2]


def test_a_signal_that_nobody_can_take_is_refused(relet, held):
    held()
    assert relet("signal", "t-1", "go", "not json").code == 2
    for _ in range(64):
        assert relet("signal", "t-1", "go").code == 0
    done = relet("signal", "t-1", "go", "--json")
    assert (done.code, done.error["code"]) == (11, "RELET-SIGNALS-FULL")
    relet("complete", *FILE)
    assert relet("signal", "t-1", "go").code == 11


def test_the_next_holder_reads_the_answer_and_until_then_it_is_7(relet, asked, held):
    asked()
    none_yet = relet("answer", "publish", *FILE, "--json")
    assert (none_yet.code, none_yet.out, none_yet.error["code"]) == (7, "", "RELET-WAITING")
    relet("decide", "t-1", "publish", "edit", "--value", "3", "--by", "ann")
    relet("claim", "q", "--handle-file", "t-1.handle")
    told = relet("answer", "publish", *FILE).json
    assert (told["kind"], told["value"], told["by"], told["accepted"]) == ("edit", 3, "ann", True)
    assert relet("answer", "other", *FILE).code == 7
    assert relet("answer", "", *FILE).code == 2


@pytest.mark.parametrize(
    ("args", "kept"),
    [
        (["--default", "deny"], ("deny", None)),
        (["--default", '"ignore"'], ("ignore", None)),
        (["--default", '{"kind": "edit", "value": 3}'], ("edit", 3)),
        (["--kind", "signal", "--default", "5"], ("signal", 5)),
        ([], ("timeout", None)),
    ],
)
def test_the_default_stands_once_the_time_is_over(relet, clock, held, db, args, kept):
    held()
    assert relet("park", "publish", "--timeout", "1h", *args, *FILE).out == "waiting in 1h00m\n"
    clock.advance("1h")
    relet("sweep")
    (wait,) = db.waits("t-1")
    assert ((str(wait.decision.kind), wait.decision.value), wait.decision.by) == (kept, "timeout")


@pytest.mark.parametrize(
    "args",
    [
        ["publish", "--kind", "reconcile"],
        ["publish", "--ask", "not json"],
        ["publish", "--kind", "timer"],
        ["publish", "--default", "deny"],
        ["publish", "--timeout", "1h", "--default", "perhaps"],
        ["publish", "--timeout", "1h", "--default", "{"],
        ["publish", "--timeout", "soon"],
        ["", "--timeout", "1h"],
        [],
    ],
)
def test_a_park_that_does_not_fit_is_usage_and_the_lease_is_kept(relet, held, db, args):
    held()
    assert relet("park", *args, *FILE).code == 2
    assert db.task("t-1").live


def test_a_park_under_a_lost_lease_is_5_and_asks_nothing(relet, clock, held, db):
    held(ttl="1s")
    clock.advance("2s")
    assert relet("park", "publish", *FILE).code == 5
    assert db.waits("t-1") == []


def test_stdin_is_the_question_or_the_handle_but_not_both(relet, held, folder, monkeypatch, db):
    held()
    assert relet("park", "publish", "--ask", "-", stdin="1").code == 2
    monkeypatch.setenv("RELET_HANDLE", (folder / "t-1.handle").read_text().strip())
    assert relet("park", "publish", "--ask", "-", stdin="1").code == 0
    assert db.waits()[0].ask == 1


def test_the_result_of_a_task_that_waits_for_somebody_is_7_and_says_how_to_answer(relet, asked, db):
    asked()
    done = relet("result", "t-1", "--json")
    assert (done.code, done.out) == (7, "")
    assert (done.error["code"], done.error["detail"]["waiting_for"]) == ("RELET-WAITING", "publish")
    digest = db.waits()[0].digest
    assert (
        f"waits for approval 'publish' → relet decide t-1 publish accept --digest {digest}" in done.error["message"]
    )


def test_ls_says_what_a_task_waits_for(relet, asked):
    asked()
    relet("submit", "q", "--id", "t-2")
    (line,) = relet("ls", "--state", "waiting").out.splitlines()[1:]
    assert re.split(r" {2,}", line)[:3] == ["t-1", "q", "◇ waiting for publish"]


def test_show_tells_what_is_waited_for_how_to_answer_and_what_was_decided(relet, asked, db):
    asked("--timeout", "1h")
    told = relet("show", "t-1").out
    digest = db.waits()[0].digest
    assert re.search(r"waits for +approval publish, since \S+Z \(\S+\), until \S+Z\n", told)
    assert re.search(r'ask +\{"draft":"grain"\}\n', told)
    assert re.search(
        rf"next +relet decide t-1 publish accept --digest {digest} +\(or deny, ignore, edit --value JSON, ", told
    )
    relet("decide", "t-1", "publish", "accept", "--by", "ann")
    told = relet("show", "t-1").out
    assert re.search(r"decided +publish, accept by ann at \S+Z\n", told)
    assert "waits for" not in told
    account = relet("show", "t-1", "--json").json
    assert (account["waiting"], [one["by"] for one in account["decisions"]]) == (None, ["ann"])


def test_history_tells_questions_and_answers_in_words(relet, asked):
    asked()
    relet("decide", "t-1", "publish", "accept", "--by", "ann")
    relet("signal", "t-1", "go")
    parked, answered, signalled = relet("history", "t-1").out.splitlines()[2:]
    assert re.search(r"parked +A token \d+  publish  waits for approval  digest=[0-9a-f]+$", parked)
    assert re.search(r"answered +publish  accept by ann  digest=[0-9a-f]+$", answered)
    assert re.search(r"signalled +go  kept, 1 in all$", signalled)


@pytest.mark.slow
def test_a_shell_agent_asks_and_a_person_answers_through_processes(process):
    process("submit", "q", "--id", "t-1")
    env = {"RELET_HANDLE": process("claim", "q", "--ttl", "30s").json["handle"]}
    assert process("park", "publish", "--ask", "-", env=env, stdin='{"draft": 1}').code == 0
    assert process("result", "t-1").code == 7
    assert process("answer", "publish", env=env).code == 7
    (wait,) = json.loads(process("waits", "--json").out)["waits"]
    assert process(*wait["next"].split()[1:]).code == 0
    assert process(*wait["next"].split()[1:-2], "--by", "somebody else").code == 11
    env = {"RELET_HANDLE": process("claim", "q", "--ttl", "30s").json["handle"]}
    assert process("answer", "publish", env=env).json["accepted"] is True


def test_hints_name_the_option_that_carries_the_value(relet, asked):
    asked()
    for told in (relet("waits").out, relet("show", "t-1").out):
        assert "or deny, ignore, edit --value JSON, respond --value JSON" in told
