"""kill -9 around the commit of a verb: all of it happened or nothing, and what was told is there for ever."""

import random
from pathlib import Path

import pytest

from tests.processes.actor import refusal
from tests.processes.whole import ask, is_whole

PROGRAMS = Path(__file__).parent / "programs"
KILLED = -9


@pytest.fixture
def killed(actor):
    """Let an actor do some verbs; it is killed at the commit of the last one."""

    def killed(when, *verbs):
        last = verbs[-1][0]
        victim = actor(FAULT=f"{when}:{last}:{[verb for verb, *_ in verbs].count(last)}")
        for verb in verbs[:-1]:
            assert refusal(victim(*verb)) is None
        victim.tell(*verbs[-1])
        assert victim.program.wait() == KILLED
        assert victim.program.rest() == []

    return killed


def kinds(db, task):
    return [str(event.kind) for event in db.history(task.id)]


def next_holder(db, task, attempt):
    """The lease of whoever comes next, once the ttl of the dead is over."""
    before = db.task(task.id).token
    db.clock.advance("61s")
    lease = db.claim("work")
    assert (lease.task_id, lease.attempt) == (task.id, attempt)
    assert before is None or lease.token > before
    assert is_whole(db)
    return lease


def test_killed_before_the_commit_of_a_claim_nothing_was_claimed(steered, killed):
    task = steered.submit("work")
    killed("before", ("claim", "work"))
    assert is_whole(steered)
    assert (steered.task(task.id).state, kinds(steered, task)) == ("ready", ["submitted"])
    assert steered.claim("work").attempt == 1


def test_cr_05_killed_after_the_commit_of_a_claim_the_task_comes_back_after_its_ttl(steered, killed):
    task = steered.submit("work")
    killed("after", ("claim", "work"))
    assert is_whole(steered)
    assert (steered.task(task.id).state, kinds(steered, task)) == ("leased", ["submitted", "claimed"])
    steered.clock.advance("59.9s")
    assert steered.claim("work") is None
    next_holder(steered, task, attempt=2).complete()
    assert kinds(steered, task) == ["submitted", "claimed", "lapsed", "claimed", "completed"]
    assert steered.task(task.id).losses == 1


@pytest.mark.parametrize(("when", "kept", "version"), [("before", "first", 1), ("after", "second", 2)])
def test_ck_02_killed_around_the_commit_of_a_save_one_whole_checkpoint_is_there(steered, killed, when, kept, version):
    task = steered.submit("work")
    killed(when, ("claim", "work"), ("save", "first"), ("save", "second"))
    assert is_whole(steered)
    assert kinds(steered, task) == ["submitted", "claimed"] + ["saved"] * version
    lease = next_holder(steered, task, attempt=2)
    assert lease.load() == kept
    assert lease.save("third") == version + 1


def test_killed_before_the_commit_of_a_completion_the_task_is_run_again(steered, killed):
    task = steered.submit("work")
    killed("before", ("claim", "work"), ("complete", "unheard"))
    assert (steered.task(task.id).state, steered.task(task.id).result) == ("leased", None)
    next_holder(steered, task, attempt=2).complete("heard")
    assert steered.result(task.id) == "heard"


def test_killed_after_the_commit_of_a_completion_the_task_is_done_for_ever(steered, killed):
    task = steered.submit("work")
    killed("after", ("claim", "work"), ("complete", "unheard"))
    assert is_whole(steered)
    assert steered.result(task.id) == "unheard"
    steered.clock.advance("1h")
    assert (steered.sweep(), steered.claim("work")) == (0, None)
    assert kinds(steered, task) == ["submitted", "claimed", "completed"]


@pytest.mark.parametrize(
    ("verb", "when", "state", "attempt"),
    [
        ("fail", "before", "leased", 2), ("fail", "after", "ready", 2),
        ("release", "before", "leased", 2), ("release", "after", "ready", 1),
    ],
)  # fmt: skip
def test_killed_around_the_commit_of_fail_or_release_it_happened_or_did_not(
    steered, killed, verb, when, state, attempt
):
    task = steered.submit("work")
    killed(when, ("claim", "work"), (verb, "wrong") if verb == "fail" else (verb,))
    assert is_whole(steered)
    assert steered.task(task.id).state == state
    next_holder(steered, task, attempt)


@pytest.mark.parametrize(("when", "made"), [("before", 0), ("after", 1)])
def test_killed_around_the_commit_of_a_submit_repeating_it_makes_one_task(steered, killed, actor, when, made):
    killed(when, ("submit", "work", {"n": 1}, "once"))
    assert len(steered.tasks()) == made
    assert is_whole(steered)
    assert steered.submit("work", {"n": 1}, id="once").created == (made == 0)
    assert len(steered.tasks()) == 1


def test_a_writer_killed_in_its_transaction_keeps_nobody_out(steered, killed):
    """It held the write lock of the file when it died."""
    task = steered.submit("work")
    killed("before", ("claim", "work"), ("save", "never"))
    other = steered.submit("work")
    assert steered.claim("work").task_id == other.id
    assert kinds(steered, task) == ["submitted", "claimed"]


@pytest.mark.slow
def test_what_was_acknowledged_before_a_kill_at_any_moment_is_there(db, start, url):
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    told = []
    for _ in range(5):
        db.submit_many("work", list(range(200)))
        victim = start(PROGRAMS / "cycles.py", url, "work", "--tell")
        told.append(victim.line())
        told += [victim.line() for _ in range(chance.randrange(60))]
        victim.process.kill()
        assert victim.wait() == KILLED
        told += victim.rest()
        assert is_whole(db), f"seed {seed}"
    stored = ask(db, "SELECT token, kind FROM events")
    missing = [line for line in told if tuple(line.split()) not in {(str(token), kind) for token, kind in stored}]
    assert missing == [], f"seed {seed}"
    assert len(told) > 5
