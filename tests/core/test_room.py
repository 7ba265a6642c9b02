"""Limits of a queue: live leases at once, of all and of one share, and grants in a time."""

import pytest

from relet.core import limits
from relet.core.model import Instants
from relet.core.rules.cancel import Cancel
from relet.core.rules.fail import Fail
from relet.core.rules.queues import Queues
from relet.core.rules.release import Release
from relet.core.rules.room import HeldBack, bucket, burst
from relet.core.rules.set_queue import SetQueue
from relet.core.rules.sweep import Sweep
from relet.core.tx import QueueRow

ENDS = {
    "complete": lambda scene, grant: scene.complete(grant),
    "fail": lambda scene, grant: scene.ask(Fail(handle=grant.handle, error="no", delay_ms=60_000)),
    "release": lambda scene, grant: scene.ask(Release(handle=grant.handle, delay_ms=60_000)),
}


def taken(grants):
    return [grant.handle.task_id for grant in grants]


def limited(scene, **limit):
    scene.ask(SetQueue(name="q", **limit))


def places(scene):
    return scene.rows("SELECT count(*) FROM places")[0][0]


def state(scene, share=None):
    (found,) = scene.ask(Queues(name="q", share=share))
    return found


class TestConcurrency:
    def test_no_more_are_live_at_once_than_the_limit(self, scene):
        limited(scene, concurrency=3)
        scene.submit("a", "b", "c", "d", "e")
        assert taken(scene.claim(n=2)) == ["a", "b"]
        assert taken(scene.claim(n=2)) == ["c"]
        assert scene.claim() == scene.claim(task_id="e") == []
        assert state(scene).held_back is HeldBack.CONCURRENCY

    @pytest.mark.parametrize("end", ENDS)
    def test_each_way_to_end_a_lease_frees_its_place(self, scene, end):
        limited(scene, concurrency=1)
        scene.submit("a", "b")
        (grant,) = scene.claim()
        assert scene.claim() == []
        ENDS[end](scene, grant)
        assert taken(scene.claim()) == ["b"]
        assert places(scene) == 1

    def test_a_completion_that_claims_next_takes_the_place_that_it_frees(self, scene):
        limited(scene, concurrency=1)
        scene.submit("a", "b")
        (grant,) = scene.claim()
        answered = scene.complete(grant, following=scene_claim())
        assert taken(answered.grants) == ["b"]

    def test_a_lease_frees_its_place_at_the_very_instant_of_its_expiry(self, scene):
        limited(scene, concurrency=1)
        scene.submit("a", ttl_ms=1_000)
        scene.submit("b")
        scene.claim()
        scene.pass_ms(999)
        assert scene.claim() == []
        scene.pass_ms(1)
        assert taken(scene.claim(task_id="b")) == ["b"]
        assert scene.task("a").losses == 1, "the lapse is written down: no later clock revives it"

    def test_a_renewed_lease_keeps_its_place(self, scene):
        limited(scene, concurrency=1)
        scene.submit("a", "b", ttl_ms=1_000)
        (grant,) = scene.claim()
        scene.pass_ms(900)
        scene.renew(grant)
        scene.pass_ms(900)
        assert scene.claim() == []

    def test_leases_that_were_live_before_the_limit_are_counted(self, scene):
        scene.submit("a", "b", "c", "d")
        grants = scene.claim(n=3)
        limited(scene, concurrency=2)
        assert scene.claim() == []
        scene.complete(grants[0])
        assert scene.claim() == [], "lowered below what is held, it ends nothing and grants nothing"
        scene.complete(grants[1])
        assert taken(scene.claim(n=5)) == ["d"]

    def test_another_queue_and_another_tenant_have_places_of_their_own(self, scene):
        limited(scene, concurrency=1)
        scene.submit("a", "b")
        scene.submit("x", "y", queue="other")
        scene.claim()
        assert taken(scene.claim("q", "other", n=9)) == ["x", "y"]

    def test_a_lifted_limit_grants_all_and_forgets_the_places(self, scene):
        limited(scene, concurrency=1)
        scene.submit("a", "b", "c")
        scene.claim()
        limited(scene, concurrency=0)
        assert places(scene) == 0
        assert taken(scene.claim(n=9)) == ["b", "c"]
        assert (places(scene), state(scene).concurrency, state(scene).held_back) == (0, None, None)

    def test_after_a_cancel_the_place_is_taken_until_the_holder_gives_way(self, scene):
        limited(scene, concurrency=1)
        scene.submit("a", "b")
        (grant,) = scene.claim()
        scene.ask(Cancel(task_id="a", reason=""))
        assert scene.claim() == []
        scene.ask(Release(handle=grant.handle))
        assert taken(scene.claim()) == ["b"]

    def test_a_crowd_of_lapses_frees_every_place_in_one_claim(self, scene):
        n = 3 * limits.LAPSES_PER_BATCH
        limited(scene, concurrency=n)
        scene.submit(*[f"t{k}" for k in range(2 * n)], ttl_ms=1_000)
        assert len(scene.claim(n=2 * n)) == n
        scene.pass_ms(1_000)
        assert len(scene.claim(n=2 * n)) == n

    def test_lapses_beyond_what_one_claim_closes_keep_their_places_until_the_next(self, scene, monkeypatch):
        monkeypatch.setattr(limits, "LAPSE_BATCHES_PER_CLAIM", 1)
        n, batch = 3 * limits.LAPSES_PER_BATCH, limits.LAPSES_PER_BATCH
        limited(scene, concurrency=n)
        scene.submit(*[f"t{k}" for k in range(3 * n)], ttl_ms=1_000)
        assert len(scene.claim(n=2 * n)) == n
        scene.pass_ms(1_000)
        assert len(scene.claim(n=2 * n)) == 2 * batch, "one batch by looking ahead, and one before it counts"
        assert len(scene.claim(n=2 * n)) == batch
        assert scene.claim() == []

    def test_a_sweep_clears_what_no_claim_came_for(self, scene):
        limited(scene, concurrency=5)
        scene.submit("a", "b")
        done, _ = scene.claim(n=2)
        scene.complete(done)
        assert places(scene) == 2
        scene.ask(Sweep())
        assert places(scene) == 1


class TestShareConcurrency:
    def test_each_share_has_so_many_live_at_most(self, scene):
        limited(scene, share_concurrency=2)
        scene.submit(*[f"a{n}" for n in range(9)], share="a")
        scene.submit("b0", share="b")
        grants = scene.claim(n=9)
        assert taken(grants) == ["a0", "b0", "a1"]
        assert scene.claim(n=9) == scene.claim(task_id="a5") == []
        scene.submit("b1", share="b")
        assert taken(scene.claim(task_id="b1")) == ["b1"]
        scene.complete(grants[0])
        assert taken(scene.claim(n=9)) == ["a2"]
        assert (state(scene, "a").held_back, state(scene, "c").held_back) == (HeldBack.SHARE_CONCURRENCY, None)

    def test_places_of_a_share_that_ended_are_cleared_by_its_next_claim(self, scene):
        limited(scene, share_concurrency=1)
        scene.submit("a0", "a1", "a2", share="a")
        for _ in range(3):
            (grant,) = scene.claim()
            assert places(scene) == 1
            scene.complete(grant)

    def test_it_holds_beside_the_limit_of_the_queue(self, scene):
        limited(scene, share_concurrency=2, concurrency=3)
        for share in "abc":
            scene.submit(*[f"{share}{n}" for n in range(3)], share=share)
        assert taken(scene.claim(n=9)) == ["a0", "b0", "c0"]
        assert scene.claim() == []

    def test_leases_from_before_the_limit_are_counted_by_their_share(self, scene):
        scene.submit("a0", "a1", share="a")
        scene.submit("x0", "x1")
        scene.claim(n=2)
        limited(scene, share_concurrency=1)
        assert taken(scene.claim(n=9)) == ["x1"], "tasks without a share have no such limit"

    def test_tasks_without_a_share_have_no_such_limit(self, scene):
        limited(scene, share_concurrency=1)
        scene.submit("x0", "x1", "x2")
        assert taken(scene.claim(n=2)) == ["x0", "x1"]
        scene.submit("a0", "a1", share="a")
        scene.submit("y0", "y1")
        assert taken(scene.claim(n=9)) == ["x2", "a0", "y0", "y1"]
        assert taken(scene.claim(task_id="a1")) == []


class TestRate:
    def test_it_is_spread_evenly_after_a_tenth_at_once(self, scene):
        limited(scene, rate=100, rate_ms=60_000)
        scene.submit(*[f"t{n}" for n in range(200)])
        assert len(scene.claim(n=50)) == 10
        assert scene.claim() == scene.claim(task_id="t150") == []
        assert (state(scene).held_back, state(scene).next_ms) == (HeldBack.RATE, 1)
        scene.pass_ms(1)
        assert len(scene.claim(n=50)) == 1, "less than one more is kept for who asks late"
        assert state(scene).next_ms == 600
        scene.pass_ms(599)
        assert scene.claim() == []
        scene.pass_ms(1)
        assert len(scene.claim(n=50)) == 1
        scene.pass_ms(1_800)
        assert len(scene.claim(n=2)) == 2
        assert taken(scene.claim(task_id="t150")) == ["t150"]
        assert scene.claim() == []

    def test_over_a_long_time_it_is_met_and_never_passed(self, scene):
        limited(scene, rate=7, rate_ms=1_000)
        scene.submit(*[f"t{n}" for n in range(600)])
        granted = 0
        for _ in range(600):
            granted += len(scene.claim(n=100))
            scene.pass_ms(100)
        assert 418 <= granted <= 421

    def test_one_rested_for_long_has_saved_no_more_than_a_full_bucket(self, scene):
        limited(scene, rate=20, rate_ms=1_000)
        scene.submit(*[f"t{n}" for n in range(50)])
        scene.pass_ms(3_600_000)
        assert len(scene.claim(n=50)) == 2

    def test_it_holds_for_shares_in_turn(self, scene):
        limited(scene, rate=20, rate_ms=1_000)
        scene.submit("a0", "a1", "a2", share="a")
        scene.submit("b0", share="b")
        assert taken(scene.claim(n=9)) == ["a0", "b0"]
        scene.pass_ms(50)
        assert taken(scene.claim(n=9)) == ["a1"]

    def test_a_lifted_rate_grants_at_once(self, scene):
        limited(scene, rate=1, rate_ms=60_000)
        scene.submit("a", "b", "c")
        assert len(scene.claim(n=9)) == 1
        limited(scene, rate=0, rate_ms=0)
        assert taken(scene.claim(n=9)) == ["b", "c"]
        assert (state(scene).rate, state(scene).rate_ms, state(scene).next_ms) == (None, None, None)

    def test_a_rate_that_is_raised_holds_from_then_on(self, scene):
        limited(scene, rate=1, rate_ms=3_600_000)
        scene.submit("a", "b")
        scene.claim()
        assert scene.claim() == []
        limited(scene, rate=10, rate_ms=1_000)
        assert scene.claim() == []
        scene.pass_ms(99)
        assert scene.claim() == []
        scene.pass_ms(1)
        assert taken(scene.claim()) == ["b"]

    def test_a_clock_that_went_back_keeps_nobody_waiting_longer_than_for_one_grant(self):
        row = QueueRow("default", "q", False, None, None, None, None, None, rate=100, rate_ms=60_000)
        row.full_us = 9_000_000_000_000
        assert bucket(row, Instants(1_000, 0)) == (0, 600)

    @pytest.mark.parametrize(("rate", "at_once"), [(1, 1), (9, 1), (10, 1), (25, 2), (1_000, 100)])
    def test_the_bucket_holds_a_tenth_and_one_at_least(self, rate, at_once):
        assert burst(rate) == at_once


def test_a_paused_queue_says_so_first(scene):
    limited(scene, paused=True, concurrency=1)
    assert state(scene).held_back is HeldBack.PAUSED


def test_queues_are_listed_by_name_in_pages(scene):
    scene.submit("a", queue="b-with-tasks")
    scene.ask(SetQueue(name="a-with-knobs", ttl_ms=5_000))
    scene.submit("b", queue="c-with-shares", share="s")
    first = scene.ask(Queues(limit=2))
    rest = scene.ask(Queues(after=first[-1].name))
    assert [one.name for one in first] == ["a-with-knobs", "b-with-tasks"]
    assert [(one.name, one.shares) for one in rest] == [("c-with-shares", True)]


def test_a_queue_tells_who_was_served_last_and_what_is_held(scene):
    scene.submit("a0", share="a", ttl_ms=1_000)
    scene.submit("x0")
    scene.claim()
    assert state(scene).last_share is None, "a task without a share is nobody's"
    scene.claim()
    assert (state(scene).last_share, state(scene).live, state(scene).places) == ("a", 2, 2)
    scene.pass_ms(1_000)
    assert (state(scene).live, state(scene).places) == (1, 2)


def scene_claim():
    from relet.core.rules.claim import Claim

    return Claim(holder="A", queues=["q"])
