"""Plans: what they mean as text, which ones a seed makes, and what is no plan."""

import pytest

import relet
from relet.testing.crash.plan import Action, Commit, Fault, Points, at_commits, plans, read, told

COMMITS = [
    Commit(1, "claim", ""),
    Commit(2, "keep_step", "search"),
    Commit(3, "transaction", ""),
    Commit(4, "save", ""),
]


@pytest.mark.parametrize("text", ["none", "kill-after:3", "freeze-before:2,kill-at:40ms,drop:7"])
def test_a_plan_is_read_as_it_is_told(text):
    assert told(read(text)) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no fault"), ("kill", "is no fault"), ("burn:1", "is no fault"), ("kill-after:3ms", "takes a commit"),
        ("kill-at:3", "takes milliseconds"), ("kill-after:0", "counted from 1"), ("drop:-1", "is no fault"),
        (",".join(["drop:1"] * 11), "10 at most"),
    ],
)  # fmt: skip
def test_what_is_no_plan_is_refused_with_what_is(text, why):
    with pytest.raises(relet.Invalid, match=why):
        read(text)


def test_each_thing_is_done_at_each_commit_where_it_can_be():
    every = at_commits(COMMITS)
    assert len(every) == len(set(every)) == 4 + 7 + 5 + 7
    assert not {Fault(Action.KILL_BEFORE, 1), Fault(Action.FREEZE_BEFORE, 3)} & {plan[0] for plan in every}


def test_a_seed_makes_the_same_plans_and_another_seed_makes_others():
    made = [told_all(seed) for seed in (5, 5, 6)]
    assert made[0] == made[1] != made[2]
    assert all(told(read(text)) == text for text in made[0])


def told_all(seed):
    return [told(plan) for plan in plans(COMMITS, 100, seed=seed, points=Points.RANDOM, runs=50)]


@pytest.mark.parametrize(
    ("points", "runs", "single", "total"),
    [
        (Points.COMMITS, 100, 23, 23), (Points.COMMITS, 10, 10, 10), (Points.RANDOM, 10, None, 10),
        (Points.ALL, 100, 23, 48), (Points.ALL, 20, 15, 20),
    ],
)  # fmt: skip
def test_no_more_runs_than_asked_for_and_all_commits_where_there_is_room(points, runs, single, total):
    made = plans(COMMITS, 100, seed=1, points=points, runs=runs)
    assert len(made) == total
    if single is not None:
        assert set(made[:single]) <= set(at_commits(COMMITS))
