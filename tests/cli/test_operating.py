"""Commands of operators: cancel, requeue, pause, unpause, sweep."""

import click
import pytest


def three(relet):
    for name, queue in (("a", "q"), ("b", "q"), ("c", "r")):
        relet("submit", queue, "--id", name, "--label", f"queue={queue}")


def states(db):
    return {task.id: str(task.state) for task in db.tasks()}


def test_a_free_task_is_cancelled_at_once(relet, db):
    relet("submit", "q", "--id", "t-1")
    assert relet("cancel", "t-1", "--reason", "not wanted").out == "cancelled\n"
    assert db.task("t-1").reason == "not wanted"


def test_a_held_task_is_asked_to_give_way(relet, held):
    held()
    done = relet("cancel", "t-1")
    assert (done.code, done.out) == (0, "leased, cancel requested\n")
    assert "A gives way" in done.err
    assert "(cancelling)" in relet("ls").out
    assert relet("renew", "--handle-file", "t-1.handle").code == 5


def test_a_finished_task_is_left_as_it_is(relet, held, db):
    held()
    relet("complete", "--handle-file", "t-1.handle")
    assert relet("cancel", "t-1").code == 11
    assert relet("requeue", "t-1").code == 11
    assert relet("cancel", "nope").code == 10
    assert states(db) == {"t-1": "done"}


def test_a_dead_letter_gets_another_life(relet, held, db):
    held()
    relet("fail", "x", "--no-retry", "--handle-file", "t-1.handle")
    assert relet("requeue", "t-1", "--json").json["state"] == "ready"
    assert (db.task("t-1").attempt, db.task("t-1").failures) == (2, 0)


def test_many_are_shown_before_they_are_touched(relet, db):
    three(relet)
    done = relet("cancel", "--all", "--queue", "q", "--dry-run")
    assert (done.out, "nothing was changed" in done.err) == ("a\nb\n", True)
    assert set(states(db).values()) == {"ready"}
    assert relet("cancel", "--all", "--label", "queue=q", "--yes", "--json").json == {
        "ids": ["a", "b"], "count": 2, "dry_run": False,
    }  # fmt: skip
    assert states(db) == {"a": "cancelled", "b": "cancelled", "c": "ready"}


def test_cancelled_ones_are_requeued_only_when_their_state_is_named(relet, db):
    three(relet)
    relet("cancel", "--all", "--yes")
    assert relet("requeue", "--all", "--yes").out == ""
    assert relet("requeue", "--all", "--state", "cancelled", "--queue", "q", "--yes").out == "a\nb\n"
    assert states(db) == {"a": "ready", "b": "ready", "c": "cancelled"}


def test_where_nobody_can_be_asked_many_need_a_yes(relet, db):
    three(relet)
    done = relet("cancel", "--all", stdin="y\n")
    assert (done.code, done.out) == (2, "")
    assert "would cancel 3 tasks; nothing was changed" in done.err
    assert set(states(db).values()) == {"ready"}


@pytest.mark.parametrize(("answer", "code", "left"), [(True, 0, "cancelled"), (False, 130, "ready")])
def test_at_a_terminal_somebody_is_asked(relet, db, monkeypatch, answer, code, left):
    three(relet)
    asked = []

    def confirm(text, *, abort, err):
        asked.append(text)
        if not answer:
            raise click.Abort

    monkeypatch.setattr(click, "confirm", confirm)
    assert relet("cancel", "--all").code == code
    assert asked == ["cancel 3 tasks?"]
    assert set(states(db).values()) == {left}


@pytest.mark.parametrize("verb", ["cancel", "requeue"])
@pytest.mark.parametrize(
    "args",
    [[], ["a", "--all"], ["a", "--queue", "q"], ["--queue", "q"], ["a", "--dry-run"], ["--all", "--state", "x"]],
)
def test_one_id_and_conditions_do_not_mix(relet, db, verb, args):
    three(relet)
    assert relet(verb, *args, stdin="").code == 2
    assert set(states(db).values()) == {"ready"}


def test_nothing_that_matches_is_said_with_the_store(relet, folder):
    done = relet("cancel", "--all", "--queue", "none", "--yes")
    assert (done.code, done.out) == (0, "")
    assert f"nothing to cancel in {folder}/relet.db" in done.err


def test_a_paused_queue_grants_nothing_until_it_is_opened(relet):
    relet("submit", "q", "--id", "t-1")
    assert relet("pause", "q").out == "paused\n"
    assert relet("claim", "q").code == 3
    told = relet("unpause", "q", "--json").json
    assert (told["name"], told["paused"]) == ("q", False)
    assert relet("claim", "q").code == 0
    assert relet("pause").code == 2
    assert relet("pause", "q\n").code == 2


def test_a_sweep_closes_what_lapsed(relet, held, clock):
    held(ttl="1s")
    assert relet("sweep").out == "0\n"
    clock.advance("2s")
    assert relet("sweep", "--json").json == {"closed": 1}
    assert relet("sweep", "now").code == 2
