"""claim: who gets what, in which order, under which knobs; two claimers have one winner."""

import pytest

from relet.core import limits
from relet.core.errors import Conflict
from relet.core.model import Cause, FailReason, LostReason, State
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.core.rules.grant import Knobs
from relet.core.rules.release import Release
from relet.core.rules.set_queue import SetQueue
from relet.store.at_once import AT_ONCE
from tests.core.scene import TTL_MS, Scene


@pytest.fixture(params=["by the rule", "many at once by the engine"])
def scene(request, monkeypatch):
    """Both ways to claim, one after the other."""
    if request.param == "by the rule":
        for verb in (Claim, Complete):
            monkeypatch.delitem(AT_ONCE, verb)
    return Scene()


def taken(grants):
    return [grant.handle.task_id for grant in grants]


def test_a_grant_holds_everything_that_its_holder_needs(scene):
    scene.submit("t", content=[1], labels={"a": "b"}, deadline_wall_ms=scene.clock.wall_ms() + 9_000)
    (grant,) = scene.claim()
    assert (grant.handle.task_id, grant.queue, grant.kind, grant.holder, grant.attempt) == ("t", "q", "k", "A", 1)
    assert (bytes(grant.input), grant.labels, grant.deadline_left_ms) == (b"[1]", {"a": "b"}, 9_000)
    assert (grant.ttl_ms, grant.left_ms, grant.held_ms, grant.took_over) == (limits.TTL_MS, limits.TTL_MS, 0, None)
    task = scene.task()
    assert (task.state, task.live, task.token, task.holder) == (State.LEASED, True, grant.handle.token, "A")


def test_what_is_held_is_given_to_nobody_else(scene):
    scene.held()
    before = scene.state()
    assert scene.claim(holder="B") == []
    assert scene.claim(holder="A") == [], "nor to the same name again"
    assert scene.state() == before


def test_at_the_very_instant_of_expiry_the_next_one_gets_it(scene):
    first = scene.held()
    scene.pass_ms(TTL_MS - 1)
    assert scene.claim(holder="B") == []
    scene.pass_ms(1)
    (second,) = scene.claim(holder="B")
    assert second.handle.token > first.handle.token
    assert second.attempt == 2
    assert (second.took_over.token, second.took_over.holder, second.took_over.reason) == (
        first.handle.token, "A", LostReason.EXPIRED,
    )  # fmt: skip
    assert scene.causes() == [Cause.SUBMITTED, Cause.CLAIMED, Cause.LAPSED, Cause.CLAIMED]


def test_a_takeover_of_a_capped_lease_says_so(scene):
    scene.held(max_hold_ms=1_000)
    scene.pass_ms(1_000)
    (second,) = scene.claim()
    assert second.took_over.reason is LostReason.CAPPED


def test_after_a_release_the_next_lease_is_no_takeover(scene):
    scene.ask(Release(handle=scene.held().handle))
    (second,) = scene.claim()
    assert (second.took_over, second.attempt) == (None, 1)


def test_larger_priority_first_then_the_older(scene):
    for name, priority in [("a", 0), ("b", 5), ("c", -1), ("d", 5)]:
        scene.submit(name, priority=priority)
    assert taken(scene.claim(n=4)) == ["b", "d", "a", "c"]


def test_queues_are_asked_in_the_order_given(scene):
    scene.submit("a", queue="one")
    scene.submit("b", queue="two")
    assert taken(scene.claim("two", "one", n=2)) == ["b", "a"]


def test_a_claim_stops_asking_queues_once_it_has_enough(scene):
    scene.submit("a", "b", queue="one")
    scene.submit("c", queue="two")
    assert taken(scene.claim("one", "two", n=2)) == ["a", "b"]


def test_only_the_kinds_asked_for_are_taken_however_far_back_they_wait(scene):
    scene.submit(*[f"other-{n}" for n in range(limits.READY_PAGE + 5)], kind="other", priority=1)
    scene.submit("mine")
    assert taken(scene.claim(kinds=["k"])) == ["mine"]
    assert scene.claim(kinds=["none"]) == []


def test_many_are_taken_at_once_page_by_page(scene):
    ids = [f"t{n:03}" for n in range(2 * limits.READY_PAGE + 3)]
    scene.submit(*ids)
    assert taken(scene.claim(n=500)) == ids
    tokens = [row[0] for row in scene.state()["leases"]]
    assert tokens == sorted(set(tokens))


def test_an_exclusive_key_is_busy_exactly_while_a_lease_with_it_is_live(scene):
    scene.submit("a", "b", exclusive="key")
    scene.submit("c", exclusive="other")
    (first, other) = scene.claim(n=3)
    assert taken([first, other]) == ["a", "c"]
    scene.complete(first)
    assert taken(scene.claim(n=3)) == ["b"]


def test_an_expired_blocker_is_closed_by_the_claim_that_meets_it(scene):
    scene.submit("a", "b", exclusive="key")
    scene.claim(ttl_ms=1_000)
    scene.pass_ms(1_000)
    assert taken(scene.claim(task_id="b", holder="B")) == ["b"]
    assert scene.task("a").losses == 1


def test_behind_a_busy_key_others_are_found_page_by_page(scene):
    scene.submit(*[f"x{n}" for n in range(limits.READY_PAGE + 2)], exclusive="key", priority=1)
    scene.submit("free")
    scene.claim()
    assert taken(scene.claim()) == ["free"]


def test_a_paused_queue_grants_nothing_and_others_do(scene):
    scene.submit("a", queue="one")
    scene.submit("b", queue="two")
    scene.ask(SetQueue(name="one", paused=True))
    assert taken(scene.claim("one", "two", n=2)) == ["b"]
    assert scene.claim(task_id="a") == []
    scene.ask(SetQueue(name="one", paused=False))
    assert taken(scene.claim("one")) == ["a"]


def test_a_task_past_its_deadline_fails_instead_of_being_granted(scene):
    scene.submit("late", deadline_wall_ms=scene.clock.wall_ms() + 1_000)
    scene.submit("t")
    scene.pass_ms(1_000)
    assert taken(scene.claim(n=2)) == ["t"]
    late = scene.task("late")
    assert (late.state, late.reason, late.code) == (State.FAILED, FailReason.DEADLINE, "RELET-DEADLINE")
    assert scene.causes("late") == [Cause.SUBMITTED, Cause.FAILED]


def test_by_id_too_a_task_past_its_deadline_fails_and_says_so(scene):
    scene.submit("late", deadline_wall_ms=scene.clock.wall_ms() + 1_000)
    scene.pass_ms(1_000)
    refused = scene.claim(task_id="late")
    assert isinstance(refused, Conflict)
    assert scene.task("late").state is State.FAILED


KNOB_MS = {"submit": 1_000, "claim": 2_000, "handler": 3_000, "queue": 4_000, "default": limits.TTL_MS}


@pytest.mark.parametrize("first", KNOB_MS)
def test_a_knob_is_looked_for_in_submit_claim_handler_queue_and_default(scene, first):
    def given(level):
        order = list(KNOB_MS)
        return KNOB_MS[level] if order.index(level) >= order.index(first) else None

    scene.submit("t", ttl_ms=given("submit"))
    scene.ask(SetQueue(name="q", ttl_ms=given("queue")))
    (grant,) = scene.claim(ttl_ms=given("claim"), handlers={"k": Knobs(ttl_ms=given("handler"))})
    assert grant.ttl_ms == grant.left_ms == KNOB_MS[first]


def test_max_hold_shortens_a_lease_from_its_start(scene):
    assert scene.held(max_hold_ms=1_500).left_ms == 1_500


def test_a_claim_closes_a_great_many_lapses_batch_by_batch(scene):
    count = 3 * limits.LAPSES_PER_BATCH + 1
    scene.submit(*[f"t{n}" for n in range(count)], queue="crowd")
    assert len(scene.claim("crowd", n=count, ttl_ms=1_000)) == count
    scene.pass_ms(1_000)
    assert scene.claim("empty") == []
    assert {row[3] for row in scene.state()["leases"]} == {"lapsed"}


def test_even_a_claim_closes_a_bounded_number_of_lapses(scene, monkeypatch):
    monkeypatch.setattr(limits, "LAPSE_BATCHES_PER_CLAIM", 2)
    count = 3 * limits.LAPSES_PER_BATCH
    scene.submit(*[f"t{n}" for n in range(count)], queue="crowd")
    scene.claim("crowd", n=count, ttl_ms=1_000)
    scene.pass_ms(1_000)
    assert scene.claim("empty") == []
    assert [row[3] for row in scene.state()["leases"]].count("lapsed") == 2 * limits.LAPSES_PER_BATCH


@pytest.mark.parametrize("kinds", [None, ["k"]])
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("share", [None, "s"])
def test_a_task_whose_labels_are_damaged_is_left_where_it_is_and_others_are_granted(scene, kinds, n, share):
    scene.submit("bad", labels={"a": "b"}, share=share)
    scene.submit("good", labels={"a": "b"}, share=share and "t")
    scene.rows("""UPDATE tasks SET labels = '{"a":' WHERE id = 'bad'""")
    assert taken(scene.claim(n=n, kinds=kinds)) == ["good"]
    assert scene.claim(n=n, kinds=kinds) == []
    told, by_id = scene.task("bad"), scene.claim(task_id="bad")
    assert str(told).startswith("task 'bad': its row holds what is not JSON")
    assert [(wrong.code, wrong.retryable) for wrong in (told, by_id)] == [("RELET-DAMAGED", False)] * 2


def test_a_lapsed_lease_whose_task_is_damaged_keeps_nobody_from_the_work(scene):
    scene.held("bad", ttl_ms=TTL_MS)
    scene.submit("good")
    scene.rows("PRAGMA ignore_check_constraints = ON")
    scene.rows("UPDATE tasks SET state = 'odd' WHERE id = 'bad'")
    scene.pass_ms(TTL_MS)
    assert taken(scene.claim(n=2)) == ["good"]
    scene.rows("UPDATE tasks SET state = 'leased' WHERE id = 'bad'")
    scene.pass_ms(limits.TTL_MS)
    assert "bad" in taken(scene.claim(n=2))


def test_a_batch_of_damaged_ones_is_put_off_and_what_lapsed_after_them_has_its_turn(scene, monkeypatch):
    monkeypatch.setattr(limits, "LAPSE_BATCHES_PER_CLAIM", 1)
    bad = [f"bad-{n}" for n in range(limits.LAPSES_PER_BATCH)]
    scene.submit(*bad)
    scene.claim(n=len(bad), ttl_ms=TTL_MS)
    scene.held("good", ttl_ms=TTL_MS)
    scene.rows("PRAGMA ignore_check_constraints = ON")
    scene.rows("UPDATE tasks SET state = 'odd' WHERE id LIKE 'bad-%'")
    scene.pass_ms(TTL_MS)
    assert scene.claim() == []
    assert taken(scene.claim()) == ["good"]


@pytest.mark.parametrize("request_id", [None, "r"])
def test_a_task_whose_last_lease_is_damaged_is_granted_without_a_word_of_it(scene, request_id):
    def damage():
        scene.rows("UPDATE leases SET ended = 'odd' WHERE ended IS NOT NULL")

    scene.rows("PRAGMA ignore_check_constraints = ON")
    scene.held("t", ttl_ms=TTL_MS)
    scene.pass_ms(TTL_MS)
    assert scene.claim("another") == []  # which closes what has lapsed
    if request_id is None:
        damage()
    (grant,) = scene.claim(request_id=request_id)
    assert (grant.took_over is None) == (request_id is None)
    damage()
    if request_id is not None:
        (again,) = scene.claim(request_id=request_id)
        assert (again.handle, again.took_over) == (grant.handle, None)
