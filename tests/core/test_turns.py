"""Fair turns: the shares of a queue are served one after the other, whatever each of them has waiting."""

import pytest

from relet.core.rules.queues import Queues
from relet.core.rules.release import Release
from relet.core.rules.set_queue import SetQueue
from relet.core.rules.sweep import Sweep
from relet.core.rules.turns import WITHOUT_SHARE


def taken(grants):
    return [grant.handle.task_id for grant in grants]


def one_by_one(scene, n, **options):
    return [taken(scene.claim(**options))[0] for _ in range(n)]


def test_shares_take_turns_however_much_each_has_waiting(scene):
    scene.submit(*[f"a{n}" for n in range(50)], share="a")
    scene.submit("b0", share="b")
    scene.submit("c0", "c1", share="c")
    assert one_by_one(scene, 6) == ["a0", "b0", "c0", "a1", "c1", "a2"]


def test_a_share_that_comes_later_waits_for_one_turn_of_each_other_at_most(scene):
    scene.submit(*[f"m{n}" for n in range(50)], share="m")
    assert one_by_one(scene, 3) == ["m0", "m1", "m2"]
    scene.submit("a0", share="a")
    scene.submit("z0", share="z")
    assert one_by_one(scene, 3) == ["z0", "a0", "m3"]


def test_many_at_once_are_spread_over_the_shares(scene):
    for share in "abc":
        scene.submit(*[f"{share}{n}" for n in range(9)], share=share)
    assert taken(scene.claim(n=7)) == ["a0", "b0", "c0", "a1", "b1", "c1", "a2"]
    assert taken(scene.claim(n=3)) == ["b2", "c2", "a3"]


def test_within_a_share_the_larger_priority_comes_first_then_the_older(scene):
    scene.submit("old", "new", share="a")
    scene.submit("urgent", share="a", priority=9)
    scene.submit("other", share="b", priority=-9)
    assert one_by_one(scene, 4) == ["urgent", "other", "old", "new"]


def test_a_claim_for_more_than_there_is_takes_all(scene):
    scene.submit("a0", "a1", share="a")
    scene.submit("b0", share="b")
    assert taken(scene.claim(n=9)) == ["a0", "b0", "a1"]
    assert scene.claim(n=9) == []


def test_only_kinds_that_are_asked_for_take_a_turn(scene):
    scene.submit("a0", share="a", kind="x")
    scene.submit("a1", share="a", kind="y")
    scene.submit("b0", share="b", kind="x")
    assert one_by_one(scene, 1, kinds=["y"]) == ["a1"]
    assert scene.claim(kinds=["y"]) == []
    assert one_by_one(scene, 2, kinds=["x", "z"]) == ["b0", "a0"]


def test_a_busy_exclusive_key_is_passed_over_and_its_share_serves_another(scene):
    scene.submit("a0", "b0", exclusive="key", share="a")
    scene.submit("free", share="a", priority=-1)
    scene.submit("c0", share="c", exclusive="key")
    (first,) = scene.claim()
    assert taken([first]) == ["a0"]
    assert taken(scene.claim(n=5)) == ["free"]
    scene.complete(first)
    assert taken(scene.claim(n=5)) == ["c0"], "its share is next, and the key is one for all shares"


def test_of_two_shares_with_one_free_key_a_claim_of_many_grants_one(scene):
    scene.submit("a0", share="a", exclusive="key")
    scene.submit("b0", share="b", exclusive="key")
    assert taken(scene.claim(n=5)) == ["a0"]


def test_delayed_tasks_have_their_turn_when_they_are_due(scene):
    scene.submit("a0", share="a", delay_ms=1_000)
    scene.submit("b0", "b1", share="b")
    assert one_by_one(scene, 1) == ["b0"]
    scene.pass_ms(1_000)
    assert one_by_one(scene, 2) == ["a0", "b1"]


def test_a_task_past_its_deadline_takes_no_turn(scene):
    scene.submit("late", share="a", deadline_wall_ms=scene.clock.wall_ms() + 1_000)
    scene.submit("b0", share="b")
    scene.pass_ms(1_000)
    assert taken(scene.claim(n=2)) == ["b0"]


def test_a_paused_queue_gives_no_turns(scene):
    scene.submit("a0", share="a")
    scene.ask(SetQueue(name="q", paused=True))
    assert scene.claim() == []
    scene.ask(SetQueue(name="q", paused=False))
    assert taken(scene.claim()) == ["a0"]


def test_a_lapsed_task_comes_back_into_its_own_share(scene):
    scene.submit("a0", "a1", share="a")
    scene.submit("b0", share="b")
    scene.claim(ttl_ms=1_000)
    scene.pass_ms(1_000)
    assert one_by_one(scene, 3) == ["b0", "a0", "a1"]


def test_a_great_many_lapses_are_closed_before_turns_are_given(scene):
    scene.submit(*[f"t{n}" for n in range(100)], share="a")
    scene.claim(n=100, ttl_ms=1_000)
    scene.pass_ms(1_000)
    scene.claim()
    assert {row[3] for row in scene.state()["leases"]} == {None, "lapsed"}
    assert [row[3] for row in scene.state()["leases"]].count(None) == 1


def test_a_claim_of_one_task_by_id_moves_no_turn(scene):
    scene.submit("a0", "a1", share="a")
    scene.submit("b0", share="b")
    assert one_by_one(scene, 1) == ["a0"]
    assert taken(scene.claim(task_id="a1")) == ["a1"]
    assert one_by_one(scene, 1) == ["b0"]


def test_a_task_that_is_given_back_waits_for_the_next_turn_of_its_share(scene):
    scene.submit("a0", share="a")
    scene.submit("b0", share="b")
    (grant,) = scene.claim()
    scene.ask(Release(handle=grant.handle))
    assert one_by_one(scene, 2) == ["b0", "a0"]


def test_queues_have_turns_of_their_own(scene):
    for queue in ("one", "two"):
        scene.submit(f"{queue}-a", queue=queue, share="a")
        scene.submit(f"{queue}-b", queue=queue, share="b")
    assert taken(scene.claim("one")) == ["one-a"]
    assert taken(scene.claim("two")) == ["two-a"]
    assert taken(scene.claim("one", "two", n=3)) == ["one-b", "two-b"]


class TestWithoutAShare:
    """Tasks without a share, in a queue where others have one, are one share together."""

    def test_those_that_come_later_take_one_turn_in_each_round(self, scene):
        scene.submit("a0", "a1", share="a")
        scene.submit("x0", "x1")
        assert one_by_one(scene, 4) == ["x0", "a0", "x1", "a1"]
        assert scene.task("x0").share is None

    def test_those_that_were_there_before_do_as_well(self, scene):
        scene.submit("x0", "x1", "x2")
        scene.submit("a0", "a1", share="a")
        assert one_by_one(scene, 5) == ["x0", "a0", "x1", "a1", "x2"]

    def test_old_and_new_ones_are_one_share_with_one_order(self, scene):
        scene.submit("old0", "old1")
        scene.submit("old-urgent", priority=5)
        scene.submit("a0", "a1", "a2", "a3", share="a")
        scene.submit("new")
        scene.submit("new-urgent", priority=7)
        assert one_by_one(scene, 8) == ["new-urgent", "a0", "old-urgent", "a1", "old0", "a2", "old1", "a3"]
        assert one_by_one(scene, 1) == ["new"]

    def test_an_old_one_of_low_priority_is_found_behind_shares_of_higher_ones(self, scene):
        scene.submit("x0", priority=-3)
        scene.submit("x1", delay_ms=1_000)
        for n in range(20):
            scene.submit(f"a{n}", share="a", priority=n % 4)
        assert one_by_one(scene, 2) == ["x0", "a3"]
        scene.pass_ms(1_000)
        assert one_by_one(scene, 1) == ["x1"]

    def test_they_are_filtered_by_kind_and_key_too(self, scene):
        scene.submit("x0", kind="other")
        scene.submit("x1", exclusive="key")
        scene.submit("a0", share="a", exclusive="key", priority=1)
        assert taken(scene.claim(kinds=["k"], n=9)) == ["x1"]
        assert taken(scene.claim(n=9)) == ["x0"]

    def test_their_mark_is_no_key_that_anybody_sees_or_gives(self, scene):
        scene.submit("a0", share="a")
        scene.submit("x0")
        assert scene.rows("SELECT share FROM tasks ORDER BY seq") == [("a",), (WITHOUT_SHARE,)]
        assert scene.task("x0").share is None
        scene.submit("y0", queue="elsewhere")
        assert scene.rows("SELECT share FROM tasks WHERE id = 'y0'") == [(None,)]


def test_a_queue_without_shares_has_neither_turns_nor_places(scene):
    scene.submit("t")
    scene.claim()
    scene.ask(Sweep())
    assert scene.rows("SELECT * FROM queues") == scene.rows("SELECT * FROM places") == []


def test_knobs_that_are_set_later_leave_the_turn_where_it_is(scene):
    scene.submit("a0", "a1", share="a")
    scene.submit("b0", share="b")
    assert one_by_one(scene, 1) == ["a0"]
    scene.ask(SetQueue(name="q", ttl_ms=5_000))
    assert one_by_one(scene, 1) == ["b0"]


def jain(counts):
    """1 when all have the same, 1/n when one has it all."""
    return sum(counts) ** 2 / (len(counts) * sum(count * count for count in counts))


@pytest.mark.parametrize("n", [1, 7])
def test_shares_of_very_different_size_are_served_alike(scene, n):
    """Jain's index over the grants while every share has something waiting."""
    sizes = {"tiny": 20, "small": 60, "large": 400, "vast": 2_000}
    for share, size in sizes.items():
        scene.submit(*[f"{share}-{k}" for k in range(size)], share=share)
    served = dict.fromkeys(sizes, 0)
    while sum(served.values()) < 4 * 20 - n:
        for grant in scene.claim(n=n):
            served[grant.handle.task_id.split("-")[0]] += 1
    assert jain(served.values()) > 0.99
    assert max(served.values()) - min(served.values()) <= 1


def why(scene):
    (state,) = scene.ask(Queues(name="q"))
    return state.held_back


def test_whoever_looks_is_told_when_every_share_with_ready_tasks_is_at_its_limit(scene):
    scene.submit("old")
    scene.ask(SetQueue(name="q", share_concurrency=1))
    assert why(scene) is None, "no task has a share"
    scene.submit("a0", "a1", share="a")
    assert why(scene) is None
    assert taken(scene.claim(task_id="a0")) == ["a0"]
    assert why(scene) is None, "one that is older than the first share is held by none"
    assert taken(scene.claim(task_id="old")) == ["old"]
    assert why(scene) == "share_concurrency"
    scene.submit("b0", share="b")
    assert why(scene) is None, "another share has room"
    assert taken(scene.claim()) == ["b0"]
    assert taken(scene.claim()) == []
    assert why(scene) == "share_concurrency"
    scene.pass_ms(60_000)
    assert why(scene) is None, "what has expired frees its place in the next claim"
    scene.ask(SetQueue(name="q", share_concurrency=0))
    assert why(scene) is None
