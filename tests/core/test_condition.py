"""condition: what somebody may have to act on, as it comes about by verbs."""

import pytest

from relet.core import limits
from relet.core.rules.attach import Attach
from relet.core.rules.condition import AskCondition
from relet.core.rules.fail import Fail
from relet.core.rules.release import Release
from relet.core.rules.save import Save
from relet.core.rules.set_queue import SetQueue
from relet.core.rules.step import KeepStep
from relet.core.work import Outcome
from tests.core.durable import effect, end, parked, start
from tests.core.scene import TTL_MS
from tests.core.talk import RAW


def condition(scene):
    before = scene.state()
    answer = scene.ask(AskCondition())
    assert scene.state() == before, "looking changes nothing"
    return answer


def test_an_empty_store_has_nothing_to_act_on(scene):
    empty = condition(scene)
    assert (empty.queues, empty.ready, empty.recent, empty.busy, empty.dead) == ([], [], [], [], [])
    assert (empty.lapsed, empty.quiet, empty.unknown_effects, empty.stalled, empty.unanswered) == (None,) * 5


def test_a_lapse_is_told_half_a_ttl_after_the_expiry_the_oldest_one(scene):
    grant = scene.held("old")
    scene.pass_ms(1_000)
    scene.held("young")
    scene.pass_ms(TTL_MS * 3 // 2 - 1_001)
    assert condition(scene).lapsed is None
    scene.pass_ms(1)
    told = condition(scene).lapsed
    assert (told.count, told.task_id, told.holder, told.token) == (1, "old", "A", grant.handle.token)
    assert (told.queue, told.ttl_ms, told.expired_ms_ago) == ("q", TTL_MS, TTL_MS // 2)
    scene.pass_ms(1_000)
    assert (condition(scene).lapsed.count, condition(scene).lapsed.task_id) == (2, "old")


def test_a_lease_that_missed_two_heartbeats_is_told_with_what_it_has_left(scene):
    scene.held("quiet")
    scene.pass_ms(TTL_MS * 2 // 3)
    assert condition(scene).quiet is None
    scene.held("beating")
    scene.pass_ms(1)
    told = condition(scene).quiet
    assert (told.count, told.task_id, told.left_ms, told.ttl_ms) == (1, "quiet", TTL_MS // 3 - 1, TTL_MS)


def test_a_lease_at_the_end_of_what_it_may_be_held_has_missed_nothing(scene):
    scene.held("capped", max_hold_ms=TTL_MS)
    scene.pass_ms(TTL_MS - 1)
    assert condition(scene).quiet is None


def test_ready_kinds_claims_and_busy_kinds_are_told_by_queue(scene):
    scene.submit("a", "b")
    ready_at = scene.clock.wall_ms()
    scene.pass_ms(5)
    scene.submit("c", queue="r", kind="other")
    scene.submit("later", delay_ms=1_000)
    scene.held("busy", kind="slow")
    scene.complete(scene.held("done", ttl_ms=1_000))
    told = condition(scene)
    assert [(one.queue, one.kind, one.count, one.task_id) for one in told.ready] == [
        ("q", "k", 2, "a"), ("r", "other", 1, "c"),
    ]  # fmt: skip
    assert told.ready[0].ready_wall_ms == ready_at
    assert told.busy == [("q", "slow")]
    assert [(one.kind, one.count, one.lapsed, one.last_ttl_ms) for one in told.recent] == [
        ("k", 1, 0, 1_000), ("slow", 1, 0, TTL_MS),
    ]  # fmt: skip
    assert told.recent[0].last_wall_ms == scene.clock.wall_ms()


def test_what_keeps_ready_tasks_waiting_is_told_of_their_queue(scene):
    scene.submit("a", "b")
    scene.ask(SetQueue(name="q", rate=1, rate_ms=3_600_000, ttl_ms=5_000))
    assert condition(scene).queues[0].held_back is None
    scene.complete(scene.claim("q")[0])
    (queue,) = condition(scene).queues
    assert (queue.held_back, queue.apart_ms) == ("rate", 3_600_000)


def test_a_task_that_is_due_is_ready_since_then_though_no_claim_came_by(scene):
    due_at = scene.clock.wall_ms() + 1_000
    scene.submit("soon", delay_ms=1_000)
    scene.submit("far", kind="wall", delay_ms=2 * limits.HOUR_MS)
    assert condition(scene).ready == []
    scene.pass_ms(1_500)
    (told,) = condition(scene).ready
    assert (told.task_id, told.ready_wall_ms, told.in_line) == ("soon", due_at, False)
    scene.pass_ms(2 * limits.HOUR_MS)
    assert [(one.task_id, one.kind) for one in condition(scene).ready] == [("soon", "k"), ("far", "wall")]


def test_what_a_key_or_the_limit_of_a_share_holds_back_is_not_told_as_ready(scene):
    scene.submit("holds", exclusive="key", kind="holder")
    scene.submit("blocked", exclusive="key", kind="keyed")
    scene.submit("first", share="s", kind="shared")
    scene.submit("second", share="s", kind="shared")
    scene.submit("third", share="s", kind="other")
    scene.ask(SetQueue(name="q", share_concurrency=1))
    assert [one.kind for one in condition(scene).ready] == ["holder", "keyed", "other", "shared"]
    grants = [scene.claim(task_id="holds")[0], scene.claim(task_id="first")[0]]
    assert [one.kind for one in condition(scene).ready] == []
    for grant in grants:
        scene.complete(grant)
    assert [(one.kind, one.in_line) for one in condition(scene).ready] == [
        ("keyed", False), ("other", True), ("shared", True),
    ]  # fmt: skip


def test_the_newest_claim_of_a_kind_is_told_with_its_place_in_line(scene):
    scene.submit("a", "b", priority=3)
    scene.claim(task_id="b")
    scene.claim(task_id="a")
    (recent,) = condition(scene).recent
    assert (recent.last_priority, recent.last_seq, recent.last_share) == (3, 1, "\x01")


def test_lapses_are_counted_among_the_newest_leases(scene):
    scene.held("t")
    scene.pass_ms(TTL_MS)
    scene.claim("q")
    (recent,) = condition(scene).recent
    assert (recent.count, recent.lapsed) == (2, 1)


def test_a_ttl_that_was_mended_and_lapses_of_long_ago_are_told_no_more(scene):
    scene.held("short", ttl_ms=1_000)
    scene.pass_ms(1_000)
    scene.claim("q")
    scene.held("long", ttl_ms=TTL_MS)
    (recent,) = condition(scene).recent
    assert (recent.count, recent.lapsed, recent.last_ttl_ms) == (3, 1, TTL_MS)
    scene.pass_ms(limits.DOCTOR_RECENT_MS)
    assert condition(scene).recent == []


def given_back(scene, times, **options):
    for _ in range(times):
        (grant,) = scene.claim(task_id="t")
        scene.pass_ms(1_000)
        scene.ask(Release(handle=grant.handle, **options))


def test_a_task_that_is_claimed_and_given_back_again_and_again_is_told(scene):
    scene.submit("t")
    given_back(scene, limits.DOCTOR_REPEATS - 1)
    assert condition(scene).repeated is None
    given_back(scene, 1)
    told = condition(scene).repeated
    assert (told.count, told.task_id, told.queue, told.kind) == (1, "t", "q", "k")
    assert (told.leases, told.span_ms) == (limits.DOCTOR_REPEATS, limits.DOCTOR_REPEATS * 1_000)
    scene.complete(scene.claim(task_id="t")[0])
    assert condition(scene).repeated is None


@pytest.mark.parametrize(
    "keep",
    [
        lambda handle: Save(handle=handle, name="main", value=RAW),
        lambda handle: KeepStep(handle=handle, name="fetch", slot="1", value=RAW, took_ms=1),
        lambda handle: Attach(handle=handle, name="page", uri="file:///page", sha256="0" * 64, size=1),
    ],
    ids=["checkpoint", "step", "artifact"],
)
def test_whoever_keeps_what_was_done_does_not_work_in_vain(scene, keep):
    scene.submit("t")
    (grant,) = scene.claim(task_id="t")
    scene.ask(Release(handle=grant.handle))
    (grant,) = scene.claim(task_id="t")
    scene.ask(keep(grant.handle))
    scene.ask(Release(handle=grant.handle))
    given_back(scene, limits.DOCTOR_REPEATS)
    assert condition(scene).repeated is None


def test_a_task_that_is_given_back_with_a_delay_waits_for_something(scene):
    scene.submit("t")
    for _ in range(limits.DOCTOR_REPEATS):
        given_back(scene, 1, delay_ms=1_000)
        scene.pass_ms(1_000)
    assert condition(scene).repeated is None


def test_knobs_of_queues_are_told(scene):
    scene.submit("a")
    scene.ask(SetQueue(name="q", paused=True, ttl_ms=5_000, max_hold_ms=9_000))
    (knobs,) = condition(scene).queues
    assert (knobs.name, knobs.paused, knobs.ttl_ms, knobs.max_hold_ms) == ("q", True, 5_000, 9_000)


def test_an_effect_is_told_once_it_is_unknown_for_long(scene):
    grant = scene.held()
    end(scene, grant, start(scene, grant), Outcome.UNKNOWN)
    scene.pass_ms(limits.DOCTOR_EFFECT_MS - 1)
    assert condition(scene).unknown_effects is None
    scene.pass_ms(1)
    told = condition(scene).unknown_effects
    assert (told.count, told.id, told.task_id, told.age_ms) == (1, effect(scene).id, "t", limits.DOCTOR_EFFECT_MS)


def test_a_question_without_a_time_limit_is_told_once_it_is_open_for_long(scene):
    parked(scene, id="open")
    parked(scene, id="limited", timeout_ms=30 * limits.DAY_MS)
    scene.pass_ms(limits.DOCTOR_QUESTION_MS - 1)
    assert condition(scene).stalled is None
    scene.pass_ms(1)
    told = condition(scene).stalled
    assert (told.count, told.id, told.task_id, told.age_ms) == (1, "go", "open", limits.DOCTOR_QUESTION_MS)


def test_a_wait_whose_time_is_over_is_told_when_nobody_ends_it(scene):
    parked(scene, timeout_ms=1_000)
    scene.pass_ms(1_000 + limits.DOCTOR_OVERDUE_MS - 1)
    assert condition(scene).unanswered is None
    scene.pass_ms(1)
    told = condition(scene).unanswered
    assert (told.count, told.id, told.task_id, told.age_ms) == (1, "go", "t", limits.DOCTOR_OVERDUE_MS)


def test_dead_letters_are_told_by_queue_and_code_for_a_week(scene):
    for name, code in (("a", "X"), ("b", "X"), ("c", None)):
        scene.ask(Fail(handle=scene.held(name).handle, error="no", retry=False, code=code))
    told = condition(scene).dead
    assert [(one.queue, one.code, one.count, one.task_id) for one in told] == [
        ("q", "X", 2, "b"),
        ("q", None, 1, "c"),
    ]
    scene.pass_ms(limits.DOCTOR_DEAD_MS)
    assert condition(scene).dead == []
