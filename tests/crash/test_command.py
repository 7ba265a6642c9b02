"""`relet crashtest`: exit codes, what is printed, and what is wrong usage."""

import json

import pytest

from relet.cli.main import run

GOOD = ["crashtest", "good:app", "short", "--input", '{"topic": "grain"}', "--seed", "3"]


def test_all_held_is_exit_code_0_and_says_what_was_done(capsys):
    assert run([*GOOD, "--runs", "4", "--verify", "good:sent_once", "--same-result"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("crash test of short in good:app, seed 3\n6 commits: 1 claim, 2 keep_step search, ")
    assert "4 runs, " in out
    assert out.endswith("all held\n")


def test_findings_are_exit_code_8_and_json_is_one_object(capsys):
    assert run(["crashtest", "broken:app", "catches_everything", "--point", "drop:2", "--same-result", "--json"]) == 8
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["kind"], report["runs"]) == (False, "catches_everything", 1)
    assert [finding["rule"] for finding in report["findings"]] == ["same_result"]
    assert report["findings"][0]["point"] == "drop:2"
    assert f"--same-result --seed {report['seed']} --point drop:2" in report["findings"][0]["command"]


def test_answers_signals_and_a_reconciler_are_taken_from_the_command_line(capsys):
    words = ["crashtest", "good:app", "long", "--input", '{"topic": "x"}', "--answer", 'publish=edit:{"draft": 2}']
    assert run([*words, "--signal", "go=[1]", "--point", "kill-after:9", "--ttl", "30s"]) == 0
    assert "1 run, 1 fault at 1 of" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nothing:app", "short"], "there is no module nothing"),
        (["good:app", "sort"], "no handler of 'sort'; it has child, far, long, settings, short"),
        (["good:app", "short", "--point", "kill"], "is no fault"),
        (["good:app", "short", "--points", "some"], "is none of all, commits, random"),
        (["good:app", "short", "--runs", "0"], "runs"),
        (["good:app", "short", "--answer", "publish"], "write publish=accept"),
        (["good:app", "short", "--answer", "publish=maybe"], "is no decision"),
        (["good:app", "short", "--answer", "publish=edit"], "needs its value"),
        (["good:app", "short", "--verify", "good:nothing"], "not a function"),
        (["good:app", "short", "--input", "{"], "is not JSON"),
        (["good:app", "short", "--url", "sqlite:///work.db"], "stores of its own"),
        (["broken:app", "unsure", "--runs", "1"], "say what became of it by --reconcile MODULE:FUNCTION"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what_is_right(words, why, capsys):
    assert run(["crashtest", *words]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "rule", "text"),
    [
        ("fails", "it_is_done", "ends failed: nothing to be done"),
        ("catches_the_wait", "orders_heeded", "catches BaseException"),
        ("hangs", "it_ends", "did not end within 1 s"),
    ],
)
def test_a_task_that_does_not_end_well_without_any_fault_is_a_finding(kind, rule, text, capsys):
    words = ["--answer", "publish=accept", "--limit", "1s" if kind == "hangs" else "60s"]
    assert run(["crashtest", "broken:app", kind, *words]) == 8
    out = capsys.readouterr().out
    assert f"FAIL  none  {rule}: " in out
    assert text in out
    assert "--point none" in out


def test_a_question_that_nobody_answers_is_named(capsys):
    assert run(["crashtest", "good:app", "long", "--input", '{"topic": "x"}']) == 8
    assert "it waits for a decision on 'publish': give an answer to it" in capsys.readouterr().out


def test_a_process_that_is_frozen_while_it_holds_the_lock_is_frozen_elsewhere(capsys):
    assert run(["crashtest", "broken:app", "locks", "--point", "freeze-at:100ms", "--limit", "20s"]) == 0
