"""complete, fail, release, save and load: how an attempt ends, and what it leaves behind."""

import msgspec
import pytest

from relet.core import limits
from relet.core.errors import Conflict, LeaseLost, NotFound
from relet.core.model import Cause, FailReason, State
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.core.rules.fail import Fail
from relet.core.rules.finish import Ended
from relet.core.rules.grant import Knobs
from relet.core.rules.release import Release
from relet.core.rules.save import Load, Save
from relet.store.at_once import AT_ONCE
from tests.core.scene import TTL_MS, Scene


@pytest.fixture(params=["by the rule", "many at once by the engine"])
def scene(request, monkeypatch):
    """Both ways to complete, one after the other."""
    if request.param == "by the rule":
        for verb in (Claim, Complete):
            monkeypatch.delitem(AT_ONCE, verb)
    return Scene()


def fail(scene, grant, error="no", **more):
    return scene.ask(Fail(handle=grant.handle, error=error, **more))


def save(scene, grant, value, name="main"):
    return scene.ask(Save(handle=grant.handle, name=name, value=msgspec.Raw(msgspec.json.encode(value))))


def load(scene, grant, name="main"):
    return msgspec.json.decode(scene.ask(Load(handle=grant.handle, name=name)))


def test_a_result_is_stored_and_ends_the_task(scene):
    (outcome,) = scene.complete(scene.held(), result={"sum": 3}).outcomes
    assert outcome == Ended(state=State.DONE)
    task = scene.task()
    assert (task.state, task.result, task.live, task.reason) == (State.DONE, {"sum": 3}, False, None)
    assert scene.causes()[-1] is Cause.COMPLETED


def test_a_result_clears_what_an_earlier_attempt_had_to_say(scene):
    fail(scene, scene.held(), "first", delay_ms=0, code="E1")
    assert (scene.task().error, scene.task().code) == ("first", "E1")
    (grant,) = scene.claim()
    scene.complete(grant)
    assert (scene.task().error, scene.task().code) == (None, None)


def test_outcomes_are_aligned_with_their_completions(scene):
    a, b = scene.held("a"), scene.held("b", ttl_ms=1_000)
    scene.pass_ms(1_000)
    outcomes = scene.complete(b, a).outcomes
    assert (type(outcomes[0]), outcomes[1]) == (LeaseLost, Ended(state=State.DONE))


def test_the_next_lease_comes_in_the_same_transaction(scene):
    grant = scene.held()
    scene.submit("next")
    answer = scene.complete(grant, following=Claim(holder="A", queues=["q"], request_id="r"))
    assert [grant.handle.task_id for grant in answer.grants] == ["next"]


def test_whoever_lost_all_it_held_is_given_nothing_more(scene):
    grant = scene.held()
    scene.submit("next")
    scene.pass_ms(TTL_MS)
    answer = scene.complete(grant, following=Claim(holder="A", queues=["q"]))
    assert isinstance(answer.outcomes[0], LeaseLost)
    assert answer.grants == []
    assert scene.task("next").state is State.READY


def test_a_next_claim_under_a_used_request_id_is_refused_before_anything_is_completed(scene):
    scene.submit("x")
    scene.claim(request_id="r")
    held, before = scene.held(), scene.state()
    answer = scene.complete(held, following=Claim(holder="B", queues=["q"], request_id="r"))
    assert isinstance(answer, Conflict)
    assert scene.state() == before


def test_a_request_id_stands_for_what_is_completed_as_well(scene):
    first, second = scene.held("a"), scene.held("b")
    scene.submit("x", "y", "z")
    following = Claim(holder="A", queues=["q"], request_id="r")
    (granted,) = scene.complete(first, following=following).grants
    (again,) = scene.complete(first, following=following).grants
    assert again.handle == granted.handle
    assert isinstance(scene.complete(second, following=following), Conflict)


def test_a_failure_is_counted_and_tried_again_after_the_backoff(scene):
    ended = fail(scene, scene.held(), "no page", code="E404")
    assert ended.state is State.READY
    assert limits.BACKOFF_BASE_MS <= ended.delay_ms < limits.BACKOFF_BASE_MS * 1.2
    task = scene.task()
    assert (task.failures, task.losses, task.attempt, task.error, task.code) == (1, 0, 2, "no page", "E404")
    assert scene.claim() == []
    scene.pass_ms(ended.delay_ms)
    assert scene.claim()[0].attempt == 2


@pytest.mark.parametrize(("delay_ms", "least", "most"), [(0, 0, 0), (10_000, 10_000, 11_999)])
def test_a_delay_that_is_asked_for_replaces_the_backoff(scene, delay_ms, least, most):
    assert least <= fail(scene, scene.held(), delay_ms=delay_ms).delay_ms <= most


def test_the_backoff_doubles_to_the_cap_of_the_handler(scene):
    scene.submit("t", max_attempts=6)
    delays = []
    for _ in range(5):
        (grant,) = scene.claim(handlers={"k": Knobs(backoff_base_ms=100, backoff_cap_ms=400)})
        delays.append(fail(scene, grant).delay_ms)
        scene.pass_ms(delays[-1])
    assert all(wait <= delay < wait * 1.2 for wait, delay in zip([100, 200, 400, 400, 400], delays, strict=True))


def test_without_a_retry_the_task_fails_at_once(scene):
    ended = fail(scene, scene.held(), "bad input", retry=False)
    assert ended == Ended(state=State.FAILED, reason="permanent")
    assert (scene.task().reason, scene.task().error) == (FailReason.PERMANENT, "bad input")


def test_the_last_attempt_ends_in_a_dead_letter(scene):
    scene.submit("t", max_attempts=2)
    for expected in (State.READY, State.FAILED):
        (grant,) = scene.claim()
        assert fail(scene, grant, delay_ms=0).state is expected
    task = scene.task()
    assert (task.reason, task.failures, task.attempt) == (FailReason.ATTEMPTS, 2, 3)
    assert scene.causes()[-1] is Cause.FAILED


def test_past_its_deadline_a_failure_is_final(scene):
    grant = scene.held(deadline_wall_ms=scene.clock.wall_ms() + 1_000)
    scene.pass_ms(1_000)
    assert fail(scene, grant).reason == "deadline"


def test_a_release_costs_no_attempt(scene):
    grant = scene.held()
    assert scene.ask(Release(handle=grant.handle)) == Ended(state=State.READY)
    task = scene.task()
    assert (task.attempt, task.failures, task.losses) == (1, 0, 0)
    (again,) = scene.claim()
    assert again.handle.token > grant.handle.token


def test_a_release_may_put_the_task_out_of_reach_for_a_while(scene):
    scene.ask(Release(handle=scene.held().handle, delay_ms=500))
    assert scene.claim() == []
    scene.pass_ms(500)
    assert scene.claim()


def test_a_checkpoint_outlives_its_holder(scene):
    first = scene.held()
    assert save(scene, first, {"page": 3}).version == 1
    assert save(scene, first, {"page": 4}).version == 2
    save(scene, first, [1], name="other")
    scene.pass_ms(TTL_MS)
    (second,) = scene.claim(holder="B")
    assert load(scene, second) == {"page": 4}
    assert load(scene, second, "other") == [1]
    assert load(scene, second, "never") is None
    assert load(scene, first) == {"page": 4}, "whoever lost it may still read"


def test_a_stranger_may_not_read_checkpoints(scene):
    grant = scene.held()
    for changed in ({"secret": "x"}, {"token": 99}):
        refused = scene.ask(Load(handle=msgspec.structs.replace(grant.handle, **changed), name="main"))
        assert isinstance(refused, NotFound)


def test_progress_starts_the_count_of_losses_in_a_row_anew(scene):
    scene.held(ttl_ms=1_000, max_losses=2, max_attempts=10)
    for _ in range(3):
        scene.pass_ms(1_000)
        (grant,) = scene.claim()
        save(scene, grant, 1)
    task = scene.task()
    assert (task.state, task.losses) == (State.LEASED, 3)
    assert scene.causes().count(Cause.SAVED) == 3
