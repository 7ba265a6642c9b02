"""The research pipeline: killed anywhere it ends right, repeats no kept step, and registers its report once."""

import re
from collections import Counter
from contextlib import closing
from functools import partial

import msgspec
import pytest

from examples.outside.asking import Declined, ask
from examples.outside.serving import Reply
from examples.research_pipeline import corpus
from examples.research_pipeline.pipeline import Report, app, research
from relet.testing import store
from tests.uses.command import run_example
from tests.uses.lives import KINDS, Life, Nurseries, every_death

APP = "examples.research_pipeline.pipeline:app"
AT_ONCE = 3  # pages that are read side by side, so that so many calls can be under way when the worker dies
LEAST = {"asking": 12, "told": 13, "working": 9, "sent": 5}


@pytest.fixture(scope="module")
def nurseries(tmp_path_factory, serve, ledger):
    environment = {"CORPUS_URL": serve("examples.research_pipeline.corpus"), "DESK_URL": ledger.url}
    with closing(Nurseries(tmp_path_factory.mktemp("nurseries"), APP, environment)) as nurseries:
        yield nurseries


@pytest.fixture
def life(tmp_path):
    """One task in a folder of its own."""

    def life(name, die=None):
        folder = tmp_path / name
        folder.mkdir()
        return Life(folder, partial(research.submit, topic="grain"), lambda *_: None, die)

    return life


def reported(life):
    """What the report says, but for the number that the catalogue gave it."""
    report = msgspec.convert(life.task.result, Report)
    return msgspec.structs.replace(report, number=0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_every_point_the_report_is_the_same_and_in_the_catalogue_once(life, nurseries, ledger, kind):
    whole, lives = every_death(kind, life, nurseries)
    assert len(lives) >= LEAST[kind]
    assert (whole.task.state, whole.repeated()) == ("done", {})
    applied, asked = ledger.applied, ledger.asked
    for one in lives:
        assert one.task.state == "done", f"{one.die}: {one.task.error}"
        assert reported(one) == reported(whole), one.die
        repeated = one.repeated()
        assert repeated.total() <= AT_ONCE and set(repeated.values()) <= {1}, f"{one.die}: {repeated}"
        assert not one.kept_by_victim() & repeated.keys(), f"{one.die}: called again although kept: {repeated}"
        (effect,) = one.effects
        assert (effect.state, applied[effect.receipt["key"]]) == ("succeeded", 1), one.die
        assert asked[effect.receipt["key"]] == one.calls["effect", "catalogue", None] <= 2, one.die
        assert one.task.losses <= 1, one.die
    assert len({one.effects[0].id for one in lives}) == len(lives)
    assert set(applied.values()) == {1}


@pytest.fixture
def outside(beside, fresh, monkeypatch):
    """The services of the pipeline beside the test, and its store on a steered clock."""

    def outside(lose=0, pages=corpus.answer):
        db.desk = fresh(lose)
        monkeypatch.setenv("CORPUS_URL", beside(pages))
        monkeypatch.setenv("DESK_URL", db.desk.url)
        return db

    with store() as db:
        yield outside


def go_on(db, topic="grain"):
    research.submit(db, topic=topic, id="r-1")
    app.run_until_idle(db)
    return db.task("r-1")


def test_the_report_is_typed_and_all_that_was_read_is_kept_beside_it(outside):
    db = outside()
    assert go_on(db).state == "done", db.task("r-1").error
    report = db.result("r-1", returns=Report)
    assert (report.topic, report.number, [page.name for page in report.sources]) == (
        "grain",
        1,
        ["mill", "silo", "weevil"],
    )
    assert {finding.page for finding in report.findings} == {"mill", "silo", "weevil"}
    kept = {artifact.name: db.open(artifact.uri).read() for artifact in db.artifacts("r-1")}
    assert kept.pop("report.json") == msgspec.json.encode(report)
    assert kept == {f"{name}.txt": corpus.PAGES[name].encode() for name in ("mill", "silo", "weevil")}
    (effect,) = db.effects()
    assert (effect.contract.kind, effect.receipt) == ("keyed", {"number": 1, "key": effect.receipt["key"]})
    assert db.desk.entries == {effect.receipt["key"]: {"title": report.title, "findings": len(report.findings)}}


def test_a_lost_reply_of_the_catalogue_is_asked_for_again_with_the_same_key_and_what_was_paid_is_not_paid_again(
    outside,
):
    db = outside(lose=1)
    assert (go_on(db).state, db.task("r-1").failures) == ("ready", 1)
    assert [effect.state for effect in db.effects()] == ["unknown"]
    db.clock.advance("2s")
    assert go_on(db).state == "done"
    assert (list(db.desk.applied.values()), list(db.desk.asked.values())) == ([1], [2])
    steps = db.steps("r-1")
    assert ({step.token for step in steps}, len(steps)) == ({1}, 8)
    saved = [event.detail.get("saved") for event in db.history("r-1") if event.kind == "claimed"][-1]
    assert saved["steps"] == 8 and saved["cost"] == sum(step.cost or 0 for step in steps) > 0


def test_a_topic_that_no_page_has_fails_for_good(outside):
    db = outside()
    task = go_on(db, topic="gold")
    assert (task.state, task.code, db.desk.asked) == ("failed", "NOTHING-FOUND", {})


def test_a_page_that_is_gone_fails_for_good_and_nothing_is_registered(outside):
    db = outside(
        pages=lambda asked: Reply(200, ["silo", "gone"]) if asked.path == "/search" else corpus.answer(asked)
    )
    task = go_on(db)
    assert (task.state, task.code, db.desk.asked) == ("failed", "HTTP-404", {})


def model(said):
    """An endpoint that answers the job at the head of a prompt."""

    def answer(asked):
        text = msgspec.json.decode(asked.body)["messages"][0]["content"]
        reply = said(text.splitlines()[0].removeprefix("# "), text)
        if isinstance(reply, Reply):
            return reply
        content = msgspec.json.encode(reply).decode()
        return Reply(200, {"choices": [{"message": {"content": content}}], "usage": {"total_tokens": 10}})

    return answer


def test_a_real_model_fills_the_place_of_the_scripted_one_and_what_it_invents_is_no_finding(
    outside, beside, monkeypatch
):
    claims = ["The walls are of steel or of concrete.", "Grain is gold."]
    said = {"extract": claims, "summarise": {"title": "Walls", "summary": "Of steel."}}
    monkeypatch.setenv("EXAMPLE_MODEL_URL", beside(model(lambda job, _: said[job])))
    db = outside()
    assert go_on(db).state == "done", db.task("r-1").error
    report = db.result("r-1", returns=Report)
    assert [(finding.claim, finding.page) for finding in report.findings] == [(claims[0], "silo")]
    assert sum(step.cost or 0 for step in db.steps("r-1")) == 40


def test_a_model_that_asks_for_patience_gets_it_and_the_pages_are_not_fetched_again(outside, beside, monkeypatch):
    busy, fetched = [True], Counter()

    def pages(asked):
        fetched[asked.path] += 1
        return corpus.answer(asked)

    said = {"extract": [], "summarise": {"title": "t", "summary": "s"}}
    answer = model(lambda job, _: Reply(429, "slow down", {"Retry-After": "90"}) if busy else said[job])
    monkeypatch.setenv("EXAMPLE_MODEL_URL", beside(answer))
    db = outside(pages=pages)
    task = go_on(db)
    assert (task.state, task.code, task.failures) == ("ready", "HTTP-429", 1)
    assert 90 <= (task.due_at - task.updated_at).total_seconds() <= 110  # what was asked for, and jitter after it
    busy.clear()
    db.clock.advance("110s")
    assert go_on(db).state == "done", db.task("r-1").error
    kept = [step.key for step in db.steps("r-1") if (step.name, step.token) == ("retrieve", 1)]
    assert kept and all(fetched[f"/page/{name}"] == 1 for name in kept)
    assert fetched["/search"] == 1


def test_a_model_that_refuses_the_key_fails_the_task_for_good_and_the_key_is_kept_nowhere(
    outside, beside, monkeypatch
):
    monkeypatch.setenv("EXAMPLE_MODEL_URL", beside(model(lambda *_: Reply(401, "no such key"))))
    monkeypatch.setenv("EXAMPLE_MODEL_KEY", "sk-secret")
    db = outside()
    task = go_on(db)
    assert (task.state, task.code) == ("failed", "HTTP-401")
    assert "sk-secret" not in f"{task}{db.history('r-1')}{db.steps('r-1')}"


def test_a_key_that_comes_with_another_content_is_refused_by_the_catalogue(fresh):
    desk = fresh()
    headers = {"Idempotency-Key": "k"}
    first = ask(desk.url, {"title": "one"}, headers=headers)
    assert ask(desk.url, {"title": "one"}, headers=headers) == first
    with pytest.raises(Declined, match="another content"):
        ask(desk.url, {"title": "two"}, headers=headers)
    assert (desk.applied, desk.asked) == ({"k": 1}, {"k": 3})


@pytest.mark.slow
def test_one_command_shows_a_killed_worker_what_was_saved_and_one_entry():
    printed = run_example("research_pipeline", "--kill-at", "9", "--lose", "1", "--ttl", "1s")
    assert "SIGKILL: worker A is gone" in printed
    assert re.search(r"the last holder skipped \d+ steps: \d+ ms and \d+ tokens saved", printed)
    assert "the catalogue applied 1 entry of this run" in printed
