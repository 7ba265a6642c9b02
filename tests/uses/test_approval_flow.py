"""The approval flow: killed anywhere it asks each question once and publishes once; every answer is handled."""

import socket
from contextlib import closing
from datetime import timedelta
from functools import partial

import msgspec
import pytest

import relet
from examples.approval_flow import flow
from examples.approval_flow.flow import DRAFTS_MAX, Announcement, announce
from relet.testing import store
from tests.uses.command import run_example
from tests.uses.lives import KINDS, Life, Nurseries, every_death

APP = "examples.approval_flow.flow:app"
LEAST = {"asking": 7, "told": 8, "working": 3, "sent": 1}
FIRST = "News about the new silo."
SECOND = f"{FIRST} (after “say when”)"


@pytest.fixture(scope="module")
def nurseries(tmp_path_factory, ledger):
    with closing(Nurseries(tmp_path_factory.mktemp("nurseries"), APP, {"SITE_URL": ledger.url})) as nurseries:
        yield nurseries


@pytest.fixture
def life(tmp_path):
    """One task in a folder of its own; a person first says something, then accepts."""

    def answer(db, task_id):
        for wait in db.waits(task_id):
            if wait.open and wait.n == 1:
                db.decide(task_id, "publish", "respond", "say when", by="ann")
            elif wait.open:
                db.decide(task_id, "publish", "accept", by="ann")

    def life(name, die=None):
        folder = tmp_path / name
        folder.mkdir()
        return Life(folder, partial(announce.submit, topic="the new silo"), answer, die)

    return life


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ap_08_killed_at_every_point_each_question_is_asked_once_and_the_post_made_once(
    life, nurseries, ledger, kind
):
    whole, lives = every_death(kind, life, nurseries)
    assert len(lives) >= LEAST[kind]
    applied, asked, entries = ledger.applied, ledger.asked, ledger.entries
    for one in [whole, *lives]:
        assert one.task.state == "done", f"{one.die}: {one.task.error}"
        made = msgspec.convert(one.task.result, Announcement)
        assert (made.text, made.decision, made.by, made.drafts) == (SECOND, "accept", "ann", 2), one.die
        (effect,) = one.effects
        key = effect.receipt["key"]
        assert (effect.state, applied[key], asked[key], entries[key]["text"]) == ("succeeded", 1, 1, SECOND), one.die
        assert made.post == effect.receipt["number"], one.die
        assert [(wait.n, wait.decision.kind, wait.ask["draft"]) for wait in one.waits] == [
            (1, "respond", FIRST), (2, "accept", SECOND),
        ], one.die  # fmt: skip
        repeated = one.repeated()
        assert repeated.total() <= (0 if one is whole else 1), f"{one.die}: {repeated}"
        assert not one.kept_by_victim() & repeated.keys(), f"{one.die}: called again although kept: {repeated}"
        assert one.task.losses <= 1, one.die


@pytest.fixture
def desk(fresh, monkeypatch):
    """The store on a steered clock, with a task that has asked its first question."""
    site = fresh()
    monkeypatch.setenv("SITE_URL", site.url)
    with store() as db:
        announce.submit(db, topic="the new silo", id="a-1")
        db.site, db.posts = site, lambda: [entry["text"] for entry in site.entries.values()]
        assert go_on(db).state == "waiting"
        yield db


def go_on(db):
    flow.app.run_until_idle(db)
    return db.task("a-1")


def end(db):
    """What became of the announcement, and what was posted."""
    assert go_on(db).state == "done", db.task("a-1").error
    return db.result("a-1", returns=Announcement), db.posts()


def asked_now(db):
    (wait,) = db.waits()
    return wait


def refused(db, *decision, **named):
    """The code of the refusal of a decision."""
    with pytest.raises(relet.Conflict) as refusal:
        db.decide("a-1", "publish", *decision, **named)
    return refusal.value.code


def test_while_a_person_thinks_nobody_holds_the_task_and_a_new_token_goes_on_from_what_was_kept(desk, monkeypatch):
    assert (desk.task("a-1").live, desk.waits()[0].ask["draft"]) == (False, FIRST)
    assert asked_now(desk).due_at - asked_now(desk).opened_at == timedelta(days=1)
    desk.clock.advance("23h 59m 59s")
    assert go_on(desk).state == "waiting"
    # AP-08: what was done before the question is not done again after the answer.
    monkeypatch.setattr(flow, "write", lambda **_: pytest.fail("the draft was written again"))
    desk.decide("a-1", "publish", "accept", by="ann", digest=asked_now(desk).digest)
    made, posts = end(desk)
    task = desk.task("a-1")
    assert (made.decision, made.by, posts) == ("accept", "ann", [FIRST])
    assert (task.attempt, task.losses) == (1, 0)
    assert [event.token for event in desk.history("a-1") if event.kind == "claimed"] == [1, 2]


@pytest.mark.parametrize("decision", ["deny", "ignore"])
def test_what_was_denied_or_ignored_is_not_published(desk, decision):
    desk.decide("a-1", "publish", decision, by="ann")
    made, posts = end(desk)
    assert (made.decision, made.by, made.post, posts, desk.effects()) == (decision, "ann", None, [], [])


@pytest.mark.parametrize("value", ["The silo opens.", {"draft": "The silo opens.", "number": 1}])
def test_the_edited_draft_is_what_is_published(desk, value):
    desk.decide("a-1", "publish", "edit", value, by="ann")
    made, posts = end(desk)
    assert (made.decision, made.text, posts) == ("edit", "The silo opens.", ["The silo opens."])


@pytest.mark.parametrize("value", [{"title": "no draft"}, 7, "  ", {"draft": ["a list"]}])
def test_an_edit_without_a_text_publishes_nothing_and_is_asked_again(desk, value):
    desk.decide("a-1", "publish", "edit", value, by="ann")
    assert (go_on(desk).state, desk.posts()) == ("waiting", [])
    assert (asked_now(desk).n, asked_now(desk).ask["draft"]) == (2, FIRST)
    assert "ann carried no text" in asked_now(desk).ask["problem"]


def test_a_response_makes_a_new_draft_that_is_asked_about_anew(desk):
    first = asked_now(desk)
    desk.decide("a-1", "publish", "respond", "say when", by="ann")
    go_on(desk)
    assert (asked_now(desk).n, asked_now(desk).ask["draft"]) == (2, SECOND)
    # AP-05: who still looks at the first draft does not decide on the second.
    assert refused(desk, "accept", by="bob", digest=first.digest) == "RELET-OTHER-QUESTION"
    desk.decide("a-1", "publish", "accept", by="ann")
    made, posts = end(desk)
    assert (made.drafts, posts) == (2, [SECOND])


def test_the_drafts_come_to_an_end_and_nothing_is_published_unseen(desk):
    for n in range(1, DRAFTS_MAX + 1):
        assert (asked_now(desk).n, asked_now(desk).ask["number"]) == (n, n)
        desk.decide("a-1", "publish", "respond", f"remark {n}", by="ann")
        go_on(desk)
    made, posts = end(desk)
    assert (made.decision, made.drafts, made.post, posts) == ("respond", DRAFTS_MAX, None, [])
    assert len(desk.steps("a-1")) == DRAFTS_MAX


def test_ap_02_when_nobody_answers_in_time_it_is_denied_and_a_late_answer_changes_nothing(desk):
    desk.clock.advance("1d")
    assert refused(desk, "accept", by="ann") == "RELET-WAIT-OVER"
    made, posts = end(desk)
    assert (made.decision, made.by, made.post, posts) == ("deny", "timeout", None, [])
    assert refused(desk, "accept", by="ann") == "RELET-ALREADY-DECIDED"
    assert go_on(desk).state == "done" and desk.posts() == []


def test_an_answer_before_the_question_counts_for_nothing():
    with store() as db:
        announce.submit(db, topic="the new silo", id="a-1")
        assert refused(db, "accept", by="ann") == "RELET-NOT-ASKED"
        assert (go_on(db).state, asked_now(db).decision) == ("waiting", None)


def test_ap_09_the_first_answer_stands_however_often_and_by_whom_it_is_repeated(desk):
    first = desk.decide("a-1", "publish", "accept", by="ann")
    assert desk.decide("a-1", "publish", "accept", by="ann") == first
    assert refused(desk, "deny", by="bob") == "RELET-ALREADY-DECIDED"
    made, posts = end(desk)
    assert desk.decide("a-1", "publish", "accept", by="ann") == first
    assert refused(desk, "edit", "mine", by="bob") == "RELET-ALREADY-DECIDED"
    assert (made.by, posts, end(desk)[1]) == ("ann", [FIRST], [FIRST])


def test_ap_05_the_answer_to_one_task_is_none_to_another(desk):
    announce.submit(desk, topic="the new silo", id="a-2")
    desk.decide("a-1", "publish", "accept", by="ann")
    end(desk)
    assert (desk.task("a-2").state, desk.posts()) == ("waiting", [FIRST])


def test_an_answer_after_a_cancel_is_refused_and_nothing_is_published(desk):
    desk.cancel("a-1", "no longer news")
    assert refused(desk, "accept", by="ann") == "RELET-NOT-ASKED"
    assert (go_on(desk).state, desk.posts()) == ("cancelled", [])


def test_a_post_whose_reply_was_lost_is_found_by_its_reference_and_not_made_again(fresh, monkeypatch):
    site = fresh(lose=1)
    monkeypatch.setenv("SITE_URL", site.url)
    with store() as db:
        announce.submit(db, topic="the new silo", id="a-1")
        go_on(db)
        db.decide("a-1", "publish", "accept", by="ann")
        assert go_on(db).state == "done"
        (effect,) = db.effects()
        assert (effect.state, effect.tries, site.applied) == ("succeeded", 1, {effect.receipt["key"]: 1})


def test_while_the_site_is_away_nothing_is_lost_and_the_decision_holds(desk, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening: whoever comes is turned away
        monkeypatch.setenv("SITE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        desk.decide("a-1", "publish", "accept", by="ann")
        assert (go_on(desk).state, desk.task("a-1").failures) == ("ready", 1)
    monkeypatch.setenv("SITE_URL", desk.site.url)
    desk.clock.advance("1m")
    made, posts = end(desk)
    assert (made.by, made.drafts, posts) == ("ann", 1, [FIRST])


@pytest.mark.slow
def test_one_command_shows_a_killed_worker_and_one_post():
    printed = run_example("approval_flow", "--answer", "accept", "--kill-at", "2", "--lose", "1", "--ttl", "1s")
    assert "SIGKILL: worker A is gone" in printed
    assert f"the site has 1 posts of this run: ['{FIRST}']" in printed


@pytest.mark.slow
def test_one_command_asks_whoever_sits_at_the_terminal():
    printed = run_example("approval_flow", said="what\nrespond\nsay when\nedit\nAll of it.\n")
    assert "edit by you on draft 2" in printed
    assert "the site has 1 posts of this run: ['All of it.']" in printed


@pytest.mark.slow
def test_one_command_ends_unpublished_when_nobody_answers():
    printed = run_example("approval_flow", "--answer", "wait", "--patience", "500ms")
    assert "deny by timeout on draft 1" in printed
    assert "the site has 0 posts of this run: []" in printed
