"""`relet effects` and `relet reconcile`: what was done outside, and what became of it."""

import re
import shlex

import msgspec
import pytest

import relet as library
from relet.core.work import Evidence, Outcome

APP = library.App()
CALLS = []


@APP.task("mail", queue="q")
def mail(run):
    def send(payload, effect):
        CALLS.append(effect.attempt)
        raise ConnectionError("the reply was lost")

    return run.effect("letter", {"to": "ann"}, send)


@APP.task("bill", queue="q")
def bill(run):
    return run.effect("charge", 20, lambda payload, effect: {"charged": payload}, key="charge:7")


@APP.task("put", queue="q", retry=library.RetryPolicy(base=3_600))
def put(run):
    def send(payload, effect):
        raise ConnectionError("the reply was lost")

    return run.effect("put", 1, send, contract=library.Natural())


@pytest.fixture
def unknown(db):
    """A task that waits until somebody has found out what became of its letter; the effect's id."""
    CALLS.clear()
    mail.submit(db, id="t-1")
    APP.run_until_idle(db)
    (effect,) = db.effects("unknown")
    return effect.id


def test_effects_are_listed_with_what_is_known_of_them(relet, db, unknown):
    bill.submit(db, id="t-2")
    APP.run_until_idle(db)
    done = relet("effects")
    head, first, second = (re.split(r" {2,}", line) for line in done.out.splitlines())
    assert head == ["EFFECT", "TASK", "NAME", "KEY", "STATE", "CONTRACT", "TRIES", "TOKEN", "EVIDENCE", "CHANGED"]
    assert first[:7] == [unknown, "t-1", "letter", "-", "unknown", "opaque", "1"]
    assert second[1:7] == ["t-2", "charge", "charge:7", "succeeded", "opaque", "1"]
    assert f"relet reconcile {unknown} applied --receipt JSON (or not_applied, which tries again" in done.err
    told = relet("effects", "--json").json
    assert (told["next"], [one["receipt"] for one in told["effects"]]) == (None, [None, {"charged": 20}])


def test_effects_take_conditions_and_pages(relet, db, unknown):
    bill.submit(db, id="t-2")
    APP.run_until_idle(db)

    def names(*args):
        return [one["name"] for one in relet("effects", *args, "--json").json["effects"]]

    assert names("--state", "unknown") == names("--task", "t-1") == ["letter"]
    assert names("--state", "failed") == []
    page = relet("effects", "--limit", "1", "--json").json
    assert page["next"] == unknown
    assert names("--after", unknown) == ["charge"]
    assert f"--after {unknown}" in relet("effects", "--limit", "1").err
    assert relet("effects", "--state", "lost").code == 2
    assert relet("effects", "--limit", "0").code == 2


def test_no_effects_name_the_store(relet, folder):
    done = relet("effects")
    assert (done.code, done.out) == (0, "")
    assert f"no effects in {folder}/relet.db (there is no such file yet)" in done.err


def test_the_task_waits_and_the_inbox_says_how_to_go_on(relet, unknown):
    (wait,) = relet("waits", "--json").json["waits"]
    assert (wait["kind"], wait["next"]) == ("reconcile", f"relet reconcile {unknown} applied --receipt JSON")
    told = relet("show", "t-1").out
    assert re.search(
        rf"next +relet reconcile {unknown} applied --receipt JSON +\(or not_applied, which tries again", told
    )
    assert re.search(rf"effect +letter, unknown since \S+Z, try 1 .*reply was lost → relet reconcile {unknown}", told)


def test_an_effect_that_came_to_pass_is_settled_with_its_receipt_and_not_tried_again(relet, db, unknown):
    done = relet("reconcile", unknown, "applied", "--receipt", '{"seen": true}', "--by", "ann")
    assert (done.code, done.out) == (0, "applied\n")
    APP.run_until_idle(db)
    assert (db.result("t-1"), CALLS) == ({"seen": True}, [1])
    assert db.effects()[0].reconciled_by == "ann"


def test_an_effect_that_did_not_is_tried_again(relet, db, unknown):
    told = relet("reconcile", unknown, "not_applied", "--json").json
    assert (told["id"], told["state"], told["receipt"]) == (unknown, "failed", None)
    APP.run_until_idle(db)
    assert CALLS == [1, 2]


def test_an_effect_that_did_not_come_to_pass_is_told_as_one_that_will_be_tried_again(relet, unknown):
    assert relet("reconcile", unknown, "not_applied").out == "not applied: it will be tried again\n"


@pytest.mark.parametrize(("outcome", "word"), [("applied", "applied"), ("not_applied", "not applied")])
def test_what_was_found_out_is_told_as_the_effects_and_not_as_a_decision(relet, unknown, outcome, word):
    relet("reconcile", unknown, outcome, "--by", "ann")
    told = relet("show", "t-1").out
    assert re.search(rf"effect +letter: {word} by ann\n", told)
    assert "decided" not in told
    assert re.search(rf"effect +letter: {word} by ann$", relet("waits", "t-1").out, re.MULTILINE)


def test_what_a_late_holder_said_is_shown_and_its_receipt_fills_the_hint(relet, db, unknown, monkeypatch):
    (effect,) = db.effects("unknown")
    said = Evidence(
        token=effect.token,
        attempt=1,
        outcome=Outcome.APPLIED,
        receipt={"id": "it's 7"},
        error=None,
        at=effect.updated_at,
    )
    testified = library.Client.effects

    def effects(self, *args, **options):
        return [msgspec.structs.replace(one, evidence=[said]) for one in testified(self, *args, **options)]

    monkeypatch.setattr(library.Client, "effects", effects)
    words = f"""evidence: token {effect.token} says applied, receipt {{"id":"it's 7"}}"""
    hint = next(line for line in relet("waits").out.splitlines() if "answer" in line).split("    ")[-2].strip()
    assert words in relet("effects").err
    shown = relet("show", "t-1").out
    assert words.partition(": ")[2] in shown
    args = shlex.split(hint.removeprefix("answer").strip())
    assert args[1:4] == ["reconcile", unknown, "applied"]
    assert hint.removeprefix("answer").strip() in shown
    assert relet(*args[1:]).code == 0
    APP.run_until_idle(db)
    assert db.result("t-1") == {"id": "it's 7"}


def test_one_that_its_next_holder_repeats_is_left_to_it(relet, db):
    put.submit(db, id="t-1")
    APP.run_until_idle(db)
    (effect,) = db.effects("unknown")
    told = relet("show", "t-1").out
    assert re.search(r"effect +put, unknown since .*the next holder repeats it", told)
    assert "reconcile" not in told
    listed = relet("effects").err
    assert "nobody need reconcile them" in listed
    assert effect.id not in listed


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["perhaps"], "'perhaps' is not one of"),
        (["not_applied", "--receipt", "1"], "goes with applied"),
        (["applied", "--receipt", "seen"], "text needs quotes"),
        (["applied", "--by", ""], "by: "),
    ],
)
def test_what_does_not_fit_is_usage_and_settles_nothing(relet, db, unknown, args, words):
    done = relet("reconcile", unknown, *args)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert str(db.effects()[0].state) == "unknown"


def test_an_unknown_effect_is_10_and_a_settled_one_11(relet, unknown):
    assert relet("reconcile", "e-0", "applied").code == 10
    assert relet("reconcile", unknown, "applied").code == 0
    assert relet("reconcile", unknown, "applied").code == 0
    done = relet("reconcile", unknown, "not_applied", "--json")
    assert (done.code, done.error["code"]) == (11, "RELET-EFFECT-SETTLED")


def test_history_tells_of_tries_in_words(relet, db, unknown):
    relet("reconcile", unknown, "not_applied", "--by", "ann")
    APP.run_until_idle(db)
    lines = [line for line in relet("history", "t-1").out.splitlines() if " effect_" in line]
    assert re.search(rf"effect_started +\S+ token \d+  letter, try 1  {unknown}$", lines[0])
    assert re.search(rf"effect_ended +test token \d+  letter, try 1  unknown  {unknown}$", lines[1])
    assert re.search(rf"effect_ended +ann token \d+  letter, try 1  failed  {unknown}$", lines[2])
